import java.io.BufferedReader;
import java.io.FileReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A Kafka client driven by lines on standard input, so that one JVM serves many tests.
 *
 * It compiles against every Java client since 0.9: what came later (AdminClient, offsetsForTimes, poll(Duration)) is
 * looked up at run time. Commands, words separated by spaces:
 *
 *     create BOOTSTRAP TOPIC PARTITIONS
 *     produce BOOTSTRAP TOPIC PARTITION COUNT KEY=VALUE…   then COUNT lines, one value each; the pairs are producer configs
 *     consume BOOTSTRAP TOPIC PARTITION OFFSET COUNT KEY=VALUE…
 *     timestamp BOOTSTRAP TOPIC PARTITION TIMESTAMP
 *
 * The pair config=FILE stands for the configs in a file.
 *
 * Each answers with lines `offset N` or `record OFFSET VALUE`, and closes with `done` or `error CLASS: MESSAGE`.
 */
public final class Client {
    private static final int TIMEOUT_MS = 30_000;
    private static PrintStream out;
    private static BufferedReader in;

    public static void main(String[] arguments) throws Exception {
        out = new PrintStream(System.out, false, "UTF-8");
        in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        String line;
        while ((line = in.readLine()) != null) {
            try {
                run(line.trim().split(" "));
                out.println("done");
            } catch (Throwable failure) {
                Throwable cause = failure;
                while (cause.getCause() != null && (cause instanceof ExecutionException
                        || cause instanceof java.lang.reflect.InvocationTargetException)) {
                    cause = cause.getCause();
                }
                out.println("error " + chain(cause));
            }
            out.flush();
        }
        System.exit(0);
    }

    /** A failure and what caused it, as a stack trace has them. */
    private static String chain(Throwable failure) {
        StringBuilder text = new StringBuilder();
        for (Throwable one = failure; one != null && one != one.getCause(); one = one.getCause()) {
            text.append(text.length() == 0 ? "" : ", caused by ");
            text.append(one.getClass().getSimpleName()).append(": ").append(one.getMessage());
        }
        return text.toString().replace('\n', ' ');
    }

    private static void run(String[] words) throws Exception {
        switch (words[0]) {
            case "create":
                create(words[1], words[2], Integer.parseInt(words[3]));
                break;
            case "produce":
                produce(words[1], words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]), words);
                break;
            case "consume":
                consume(words[1], partition(words), Long.parseLong(words[4]), Integer.parseInt(words[5]), words);
                break;
            case "timestamp":
                timestamp(words[1], partition(words), Long.parseLong(words[4]));
                break;
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private static TopicPartition partition(String[] words) {
        return new TopicPartition(words[2], Integer.parseInt(words[3]));
    }

    private static Properties properties(String bootstrap, String[] words, int from) throws IOException {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        for (int i = from; i < words.length; i++) {
            int equals = words[i].indexOf('=');
            String key = words[i].substring(0, equals);
            String value = words[i].substring(equals + 1);
            if (key.equals("config")) {
                try (FileReader file = new FileReader(value)) {
                    properties.load(file);
                }
            } else {
                properties.put(key, value);
            }
        }
        return properties;
    }

    /** With the AdminClient where there is one (0.11), else by asking for the topic's metadata, which creates it. */
    private static void create(String bootstrap, String topic, int partitions) throws Exception {
        Class<?> admin;
        try {
            admin = Class.forName("org.apache.kafka.clients.admin.AdminClient");
        } catch (ClassNotFoundException absent) {
            try (KafkaProducer<byte[], byte[]> producer = producer(properties(bootstrap, new String[0], 0))) {
                producer.partitionsFor(topic);
            }
            return;
        }
        Class<?> newTopic = Class.forName("org.apache.kafka.clients.admin.NewTopic");
        Object request = newTopic.getConstructor(String.class, int.class, short.class)
                .newInstance(topic, partitions, (short) 1);
        Object client = admin.getMethod("create", Properties.class).invoke(null, properties(bootstrap, new String[0], 0));
        try {
            Object result = admin.getMethod("createTopics", java.util.Collection.class)
                    .invoke(client, Collections.singleton(request));
            Object all = result.getClass().getMethod("all").invoke(result);
            Method get = Class.forName("org.apache.kafka.common.KafkaFuture").getMethod("get");
            get.invoke(all);
        } finally {
            ((AutoCloseable) client).close();
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(Properties properties) {
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static void produce(String bootstrap, String topic, int partition, int count, String[] words)
            throws Exception {
        List<byte[]> values = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            values.add(in.readLine().getBytes(StandardCharsets.UTF_8));
        }
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(properties(bootstrap, words, 5))) {
            for (byte[] value : values) {
                sent.add(producer.send(new ProducerRecord<>(topic, partition, (byte[]) null, value)));
            }
        }
        for (Future<RecordMetadata> one : sent) {
            out.println("offset " + one.get().offset());
        }
    }

    private static KafkaConsumer<byte[], byte[]> consumer(Properties properties) {
        properties.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void consume(String bootstrap, TopicPartition partition, long offset, int count, String[] words)
            throws Exception {
        long deadline = System.currentTimeMillis() + TIMEOUT_MS;
        int seen = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(properties(bootstrap, words, 6))) {
            consumer.assign(Collections.singletonList(partition));
            consumer.seek(partition, offset);
            while (seen < count && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<byte[], byte[]> record : poll(consumer)) {
                    out.println("record " + record.offset() + " " + new String(record.value(), StandardCharsets.UTF_8));
                    seen++;
                }
            }
        }
    }

    /** poll(Duration) came with 2.0; poll(long) went with 4.0. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        try {
            Method poll = KafkaConsumer.class.getMethod("poll", Duration.class);
            return (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, Duration.ofMillis(200));
        } catch (NoSuchMethodException older) {
            Method poll = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, 200L);
        }
    }

    /** The first offset at or after a timestamp; -1 when there is none. */
    private static void timestamp(String bootstrap, TopicPartition partition, long timestamp) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(properties(bootstrap, new String[0], 0))) {
            Method lookup = KafkaConsumer.class.getMethod("offsetsForTimes", Map.class);
            Map<?, ?> found = (Map<?, ?>) lookup.invoke(consumer, Collections.singletonMap(partition, timestamp));
            Object answer = found.get(partition);
            long offset = answer == null ? -1 : (Long) answer.getClass().getMethod("offset").invoke(answer);
            out.println("offset " + offset);
        }
    }
}
