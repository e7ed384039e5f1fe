// A test of a Java client against a real broker that it starts itself: `odradek` on the path, or named by ODRADEK.
//   java -cp 'kafka-clients.jar:slf4j-api.jar' Orders.java
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

public class Orders {
    /** A broker of Odradek's: its address, and its control server (docs/control.md). */
    static final class Broker implements AutoCloseable {
        private final Path data = Files.createTempDirectory("orders");
        private final HttpClient http = HttpClient.newHttpClient();
        private final Process process;
        final String bootstrap;
        private final String control;

        Broker() throws Exception {
            String program = System.getenv().getOrDefault("ODRADEK", "odradek");
            process = new ProcessBuilder(program, "run", "--data", data.toString(), "--listen", "127.0.0.1:0",
                    "--set", "odradek.profile=test", "--set", "odradek.control.listener=127.0.0.1:0")
                    .redirectError(ProcessBuilder.Redirect.DISCARD).start();
            BufferedReader output = new BufferedReader(new InputStreamReader(process.getInputStream()));
            control = output.readLine().split(" ")[1]; // control HOST:PORT
            bootstrap = output.readLine().split(" ")[1]; // ready HOST:PORT
        }

        String ask(String method, String path, String body) throws Exception {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://" + control + path))
                    .header("Content-Type", "application/json").method(method, BodyPublishers.ofString(body)).build();
            var response = http.send(request, BodyHandlers.ofString());
            if (response.statusCode() >= 400) throw new IllegalStateException(response.body());
            return response.body();
        }

        @Override
        public void close() throws Exception {
            process.destroyForcibly().waitFor();
            try (var files = Files.walk(data)) {
                for (Path file : files.sorted(Comparator.reverseOrder()).toList()) Files.delete(file);
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        try (Broker broker = new Broker()) {
            broker.ask("POST", "/v1/topics", "{\"topic\": \"orders\"}");
            broker.ask("POST", "/v1/faults", """
                {"api": "Produce", "topic": "orders", "disconnect": true, "when": "after", "times": 1}""");
            Map<String, Object> config = Map.of("bootstrap.servers", broker.bootstrap, "enable.idempotence", true,
                    "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class);
            try (var producer = new KafkaProducer<String, String>(config)) {
                producer.send(new ProducerRecord<>("orders", "one")).get();
            }
            String faults = broker.ask("GET", "/v1/faults", "");
            check(Pattern.compile("\"fired\":\\s*1\\b").matcher(faults).find(), "the fault fired once: " + faults);
            String records = broker.ask("GET", "/v1/records?topic=orders", "");
            long stored = Pattern.compile("\"value\":\\s*\"one\"").matcher(records).results().count();
            check(stored == 1, "the order is there once: " + records);
            broker.ask("POST", "/v1/clock", "{\"advance_ms\": 691200000}"); // eight days
            check(!broker.ask("GET", "/v1/records?topic=orders", "").contains("\"one\""), "a week of retention");
        }
    }

    static void check(boolean holds, String claim) {
        if (!holds) throw new AssertionError(claim);
    }
}
