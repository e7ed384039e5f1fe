import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.Readable;

/**
 * Reads lines of "class version hex", lets Kafka's generated class read the bytes, and answers each with the hex that
 * it writes itself and, behind a tab, what it understood, as JSON. A failure is answered with "! " and its text.
 */
public class RoundTrip {
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
            ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.wrap(fromHex(words[2])));
            Class<?> type = Class.forName(words[0]);
            Message message = (Message) type.getConstructor(Readable.class, short.class).newInstance(bytes, version);
            if (bytes.remaining() > 0) {
                return "! " + line + ": " + bytes.remaining() + " bytes are left";
            }
            return toHex(write(message, version)) + "\t" + json(type, message, version);
        } catch (Throwable error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "! " + line + ": " + cause.toString().replace('\n', ' ');
        }
    }

    static ByteBuffer write(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        buffer.flip();
        return buffer;
    }

    static JsonNode json(Class<?> type, Message message, short version) throws Exception {
        Method write = Class.forName(type.getName() + "JsonConverter")
            .getMethod("write", type, short.class, boolean.class);
        return (JsonNode) write.invoke(null, message, version, false);
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
