import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.RequestAndSize;

/**
 * Reads lines of "key version code hex", lets Kafka's class read the request, and answers each with the hex of the
 * response by which it refuses the request with that error. A failure is answered with "! " and its text.
 */
public class Refusal {
    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(answer(line));
        }
        out.flush();
    }

    static String answer(String line) {
        String[] words = line.split(" ", -1);
        try {
            short version = Short.parseShort(words[1]);
            AbstractRequest request = parse(ApiKeys.forId(Integer.parseInt(words[0])), version, fromHex(words[3]));
            Throwable error = Errors.forCode(Short.parseShort(words[2])).exception();
            Message response = request.getErrorResponse(0, error).data();
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(response.size(cache, version));
            response.write(new ByteBufferAccessor(buffer), cache, version);
            buffer.flip();
            return toHex(buffer);
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "! " + line + ": " + cause.toString().replace('\n', ' ');
        }
    }

    /** Kafka 3.9 reads a ByteBuffer, Kafka 4 a Readable. */
    static AbstractRequest parse(ApiKeys api, short version, byte[] bytes) throws Exception {
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        for (Method method : AbstractRequest.class.getMethods()) {
            if (method.getName().equals("parseRequest")) {
                boolean isOld = method.getParameterTypes()[2] == ByteBuffer.class;
                Object body = isOld ? buffer : new ByteBufferAccessor(buffer);
                return ((RequestAndSize) method.invoke(null, api, version, body)).request;
            }
        }
        throw new NoSuchMethodException("parseRequest");
    }

    static byte[] fromHex(String text) {
        byte[] bytes = new byte[text.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    static String toHex(ByteBuffer buffer) {
        StringBuilder text = new StringBuilder();
        while (buffer.hasRemaining()) {
            text.append(String.format("%02x", buffer.get()));
        }
        return text.toString();
    }
}
