import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.message.ShareFetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.ResponseHeader;

/**
 * A proxy between clients and brokers that reads every response with Kafka's own classes and writes it again. It reports
 * each response that they can't read, or that they would write with other bytes, each batch of records that they find
 * damaged, each response out of order, and each error UNKNOWN_SERVER_ERROR.
 *
 * Reads commands: "proxy PORT UPSTREAM_PORT", and "report", which is answered with lines of "read API VERSION COUNT",
 * "not-read API VERSION COUNT" (Kafka has no longer this version) and "defect TEXT".
 */
public class Decoder {
    static final int MAX_DEFECTS = 100;
    static final int SHOWN_BYTES = 200;
    static final int MAX_FRAME_BYTES = 1 << 28;
    static final short PRODUCE = 0, API_VERSIONS = 18;
    static final Map<String, AtomicLong> counts = new ConcurrentSkipListMap<>();
    static final List<String> defects = new ArrayList<>();

    /** The fields of a request's header that its answer is read by. */
    static final class Request {
        final short key, version;
        final int correlationId;

        Request(ByteBuffer frame) {
            key = frame.getShort(0);
            version = frame.getShort(2);
            correlationId = frame.getInt(4);
        }

        String name() {
            return (ApiKeys.hasId(key) ? ApiKeys.forId(key).name() : "API_" + key) + " " + version;
        }
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("proxy")) {
                serve(Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            } else {
                report(out);
            }
            out.println("done");
        }
        System.exit(0);
    }

    static void report(PrintStream out) {
        counts.forEach((what, count) -> out.println(what + " " + count));
        synchronized (defects) {
            defects.forEach(defect -> out.println("defect " + defect));
        }
    }

    static void serve(int port, int upstreamPort) throws IOException {
        ServerSocket server = new ServerSocket(port, 500, InetAddress.getByName("127.0.0.1"));
        start(() -> {
            while (true) {
                Socket client = server.accept();
                start(() -> connect(client, upstreamPort));
            }
        });
    }

    static void connect(Socket client, int upstreamPort) throws IOException {
        try (Socket accepted = client; Socket broker = new Socket("127.0.0.1", upstreamPort)) {
            client.setTcpNoDelay(true);
            broker.setTcpNoDelay(true);
            Queue<Request> requests = new ConcurrentLinkedQueue<>();
            Thread answers = start(() -> {
                try {
                    pass(broker, client, frame -> answered(frame, requests));
                } finally {
                    client.close();
                }
            });
            pass(client, broker, frame -> asked(frame, requests));
            broker.shutdownOutput();
            answers.join();
        } catch (InterruptedException error) {
            throw new IOException(error);
        }
    }

    interface Work {
        void run() throws IOException;
    }

    static Thread start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException error) {
                // a peer has closed its connection; the other one is closed, too
            }
        });
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    interface Sight {
        void see(ByteBuffer frame);
    }

    /** Passes frames until the sender closes. A frame is seen before it is passed: a report has all that clients have. */
    static void pass(Socket from, Socket to, Sight sight) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(from.getInputStream(), 1 << 16));
        OutputStream out = to.getOutputStream();
        while (true) {
            int size;
            try {
                size = in.readInt();
            } catch (EOFException end) {
                return;
            }
            if (size < 0 || size > MAX_FRAME_BYTES) {
                sight.see(ByteBuffer.allocate(0));
                throw new IOException("a frame of " + size + " bytes");
            }
            ByteBuffer frame = ByteBuffer.allocate(4 + size);
            frame.putInt(size);
            in.readFully(frame.array(), 4, size);
            sight.see(frame.slice());
            out.write(frame.array());
        }
    }

    /** Remembers a request that will be answered. */
    static void asked(ByteBuffer frame, Queue<Request> requests) {
        try {
            Request request = new Request(frame);
            if (request.key != PRODUCE || acks(frame, request.version) != 0) {
                requests.add(request);
            }
        } catch (IndexOutOfBoundsException tooShort) {
            // the broker closes the connection
        }
    }

    static short acks(ByteBuffer frame, short version) {
        int at = 10 + Math.max(frame.getShort(8), 0); // behind the client's id
        if (version >= 9) {
            at += 1; // no tags
            int length = 0;
            for (int shift = 0; ; shift += 7) {
                byte next = frame.get(at++);
                length |= (next & 127) << shift;
                if (next >= 0) {
                    break;
                }
            }
            at += Math.max(length - 1, 0);
        } else if (version >= 3) {
            at += 2 + Math.max(frame.getShort(at), 0);
        }
        return frame.getShort(at);
    }

    static void answered(ByteBuffer frame, Queue<Request> requests) {
        Request request = requests.poll();
        if (request == null) {
            defect("an answer to no request", frame);
        } else if (frame.limit() < 4) {
            defect(request.name() + ": no correlation id", frame);
        } else if (request.correlationId != frame.getInt(0)) {
            defect(request.name() + ": correlation id " + frame.getInt(0) + ", not " + request.correlationId, frame);
        } else {
            check(request, frame);
        }
    }

    static void check(Request request, ByteBuffer frame) {
        short version = request.version;
        boolean isKnown = ApiKeys.hasId(request.key);
        ApiKeys api = isKnown ? ApiKeys.forId(request.key) : null;
        if (request.key == API_VERSIONS && !api.isVersionSupported(version)) {
            version = 0; // KIP-511: the answer to a version that the broker doesn't know
        }
        boolean isRead = isKnown && api.isVersionSupported(version);
        counts.computeIfAbsent((isRead ? "read " : "not-read ") + request.name(), name -> new AtomicLong()).incrementAndGet();
        if (!isRead) {
            return;
        }
        try {
            ByteBuffer rest = frame.duplicate();
            ResponseHeader header = ResponseHeader.parse(rest, api.responseHeaderVersion(version));
            ByteBuffer body = rest.slice();
            ApiMessage message = api.messageType.newResponse();
            message.read(new ByteBufferAccessor(rest), version);
            if (rest.hasRemaining()) {
                defect(request.name() + ": " + rest.remaining() + " bytes too many", frame);
            }
            if (!MessageUtil.toByteBufferAccessor(message, version).buffer().equals(body)
                || !MessageUtil.toByteBufferAccessor(header.data(), header.headerVersion()).buffer()
                    .equals(frame.duplicate().limit(frame.limit() - body.limit()))) {
                defect(request.name() + ": Kafka writes it otherwise: " + message, frame);
            }
            AbstractResponse response = AbstractResponse.parseResponse(api, new ByteBufferAccessor(body), version);
            if (response.errorCounts().containsKey(Errors.UNKNOWN_SERVER_ERROR)) {
                defect(request.name() + ": UNKNOWN_SERVER_ERROR: " + message, frame);
            }
            records(message);
        } catch (Throwable error) {
            defect(request.name() + ": " + error, frame);
        }
    }

    /** Checks the batches of records of a response. The last one may be incomplete, and is not looked at then. */
    static void records(ApiMessage message) {
        if (message instanceof FetchResponseData) {
            ((FetchResponseData) message).responses()
                .forEach(topic -> topic.partitions().forEach(partition -> batches(partition.records())));
        } else if (message instanceof ShareFetchResponseData) {
            ((ShareFetchResponseData) message).responses()
                .forEach(topic -> topic.partitions().forEach(partition -> batches(partition.records())));
        }
    }

    static void batches(BaseRecords records) {
        if (records == null) {
            return;
        }
        for (MutableRecordBatch batch : ((MemoryRecords) records).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
            }
        }
    }

    static void defect(String what, ByteBuffer frame) {
        StringBuilder text = new StringBuilder(what.replace('\n', ' '));
        text.setLength(Math.min(text.length(), 1000));
        text.append(" (").append(frame.limit()).append(" bytes, ");
        for (int at = 0; at < Math.min(frame.limit(), SHOWN_BYTES); at++) {
            text.append(String.format("%02x", frame.get(at)));
        }
        synchronized (defects) {
            if (defects.size() < MAX_DEFECTS) {
                defects.add(text.append(")").toString());
            }
        }
    }
}
