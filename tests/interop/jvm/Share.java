import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Share consumers driven by lines on standard input. Commands, words separated by spaces:
 *
 *     open NAME BOOTSTRAP GROUP TOPIC KEY=VALUE…
 *     poll NAME MILLISECONDS                answers `record PARTITION OFFSET DELIVERY VALUE` for each
 *     acknowledge NAME TYPE PARTITION OFFSET…
 *     commit NAME                           answers `failed PARTITION CLASS: MESSAGE` for each partition that was refused
 *     close NAME
 *     headers NAME MILLISECONDS              answers `record OFFSET KEY VALUE` and the headers, `name=value`, of each
 *     produce BOOTSTRAP TOPIC COUNT KEY=VALUE…
 *     records BOOTSTRAP TOPIC KEY/VALUE…    each may go on /HEADER/TEXT; no key is null
 *     abort BOOTSTRAP TOPIC COUNT           in a transaction that is aborted
 *
 * Each closes with `done` or `error CLASS: MESSAGE`.
 */
public final class Share {
    private static final Map<String, KafkaShareConsumer<String, String>> CONSUMERS = new HashMap<>();
    private static final Map<String, Map<String, ConsumerRecord<String, String>>> POLLED = new HashMap<>();
    private static PrintStream out;

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(System.out, false, "UTF-8");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null) {
            try {
                run(line.trim().split(" "));
                out.println("done");
            } catch (Throwable failure) {
                out.println("error " + failure.getClass().getSimpleName() + ": "
                        + String.valueOf(failure.getMessage()).replace('\n', ' '));
            }
            out.flush();
        }
        System.exit(0);
    }

    private static void run(String[] words) throws Exception {
        switch (words[0]) {
            case "open": open(words); break;
            case "poll": poll(words[1], Long.parseLong(words[2])); break;
            case "headers": headers(words[1], Long.parseLong(words[2])); break;
            case "acknowledge": acknowledge(words); break;
            case "commit": commit(words[1]); break;
            case "close": CONSUMERS.remove(words[1]).close(Duration.ofSeconds(10)); break;
            case "produce": produce(words, false); break;
            case "abort": produce(words, true); break;
            case "records": records(words); break;
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static Properties settings(String bootstrap, String[] words, int from) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        for (int index = from; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        return settings;
    }

    private static void open(String[] words) {
        Properties settings = settings(words[2], words, 5);
        settings.put("group.id", words[3]);
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        KafkaShareConsumer<String, String> consumer = new KafkaShareConsumer<>(settings);
        List<String> topics = new ArrayList<>();
        topics.add(words[4]);
        consumer.subscribe(topics);
        CONSUMERS.put(words[1], consumer);
        POLLED.put(words[1], new HashMap<>());
    }

    private static void poll(String name, long milliseconds) {
        Map<String, ConsumerRecord<String, String>> polled = POLLED.get(name);
        for (ConsumerRecord<String, String> record : CONSUMERS.get(name).poll(Duration.ofMillis(milliseconds))) {
            polled.put(record.partition() + " " + record.offset(), record);
            out.println("record " + record.partition() + " " + record.offset() + " "
                    + record.deliveryCount().map(String::valueOf).orElse("-") + " " + record.value());
        }
    }

    private static void headers(String name, long milliseconds) {
        for (ConsumerRecord<String, String> record : CONSUMERS.get(name).poll(Duration.ofMillis(milliseconds))) {
            StringBuilder line = new StringBuilder("record " + record.offset() + " " + record.key() + " "
                    + record.value());
            record.headers().forEach(header -> line.append('\t').append(header.key()).append('=')
                    .append(new String(header.value(), StandardCharsets.UTF_8)));
            out.println(line);
        }
    }

    private static void acknowledge(String[] words) {
        AcknowledgeType type = AcknowledgeType.valueOf(words[2]);
        for (int index = 4; index < words.length; index++) {
            CONSUMERS.get(words[1]).acknowledge(POLLED.get(words[1]).get(words[3] + " " + words[index]), type);
        }
    }

    private static void commit(String name) {
        Map<TopicIdPartition, java.util.Optional<org.apache.kafka.common.KafkaException>> result =
                CONSUMERS.get(name).commitSync(Duration.ofSeconds(10));
        result.forEach((partition, failure) -> failure.ifPresent(error -> out.println("failed " + partition.partition()
                + " " + error.getClass().getSimpleName() + ": " + error.getMessage())));
    }

    private static void produce(String[] words, boolean aborts) throws Exception {
        Properties settings = settings(words[1], words, 4);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        if (aborts) {
            settings.put("transactional.id", "share-" + words[2]);
        }
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            if (aborts) {
                producer.initTransactions();
                producer.beginTransaction();
            }
            for (int number = 0; number < Integer.parseInt(words[3]); number++) {
                producer.send(new ProducerRecord<>(words[2], (aborts ? "aborted-" : "value-") + number)).get();
            }
            if (aborts) {
                producer.abortTransaction();
            }
        }
    }

    private static void records(String[] words) throws Exception {
        Properties settings = settings(words[1], words, words.length);
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            for (int index = 3; index < words.length; index++) {
                String[] parts = words[index].split("/");
                ProducerRecord<String, String> record =
                        new ProducerRecord<>(words[2], parts[0].isEmpty() ? null : parts[0], parts[1]);
                if (parts.length > 2) {
                    record.headers().add(parts[2], parts[3].getBytes(StandardCharsets.UTF_8));
                }
                producer.send(record);
            }
        }
    }
}
