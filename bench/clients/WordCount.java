import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of a topic's lines, exactly once, until a consumer that reads committed records has all counts:
 *
 *     java WordCount.java BOOTSTRAP TOPIC APPLICATION LINES
 *
 * Each word is one record of the repartition topic, of the changelog and of the output, because nothing is cached.
 * Prints a ToolResult as JSON (bench/figures.py). The time begins with the first line, and so after the application has
 * joined its group. All topics of the application are deleted in the end.
 */
public final class WordCount {
    private static final int THREADS = 2;
    private static final long COMMIT_MS = 100;
    private static final Duration POLL = Duration.ofMillis(100);

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        String application = arguments[2];
        long lines = Long.parseLong(arguments[3]);
        String output = application + "-counts";
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            TopicDescription input = admin.describeTopics(Set.of(topic)).allTopicNames().get().get(topic);
            short replicas = (short) input.partitions().get(0).replicas().size();
            NewTopic counts = new NewTopic(output, Optional.of(input.partitions().size()), Optional.of(replicas));
            admin.createTopics(Set.of(counts)).all().get();
            System.out.println(run(bootstrap, topic, application, lines, output, replicas));
            admin.deleteTopics(admin.listTopics().names().get().stream()
                .filter(name -> name.startsWith(application)).collect(Collectors.toSet())).all().get();
        }
    }

    private static String run(
        String bootstrap, String topic, String application, long lines, String output, short replicas
    ) throws Exception {
        AtomicLong startedAt = new AtomicLong();
        AtomicLong linesRead = new AtomicLong();
        AtomicLong wordsRead = new AtomicLong();
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], String>stream(topic)
            .flatMapValues(line -> {
                startedAt.compareAndSet(0, System.nanoTime());
                List<String> words = Arrays.asList(line.split(" "));
                wordsRead.addAndGet(words.size());
                linesRead.incrementAndGet();
                return words;
            })
            .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts")).withCachingDisabled())
            .toStream()
            .to(output, Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(bootstrap, application, replicas));
        Map<String, Object> committed = Map.of(
            "bootstrap.servers", bootstrap,
            "group.id", application + "-reader",
            "auto.offset.reset", "earliest",
            "isolation.level", "read_committed",
            "key.deserializer", ByteArrayDeserializer.class,
            "value.deserializer", ByteArrayDeserializer.class
        );
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(committed)) {
            consumer.subscribe(Set.of(output));
            streams.start();
            long counts = 0;
            while (linesRead.get() < lines || counts < wordsRead.get()) {
                if (streams.state() == KafkaStreams.State.ERROR) {
                    throw new IllegalStateException("the application failed");
                }
                counts += consumer.poll(POLL).count();
            }
            double seconds = (System.nanoTime() - startedAt.get()) / 1e9;
            if (linesRead.get() != lines || counts != wordsRead.get()) {
                throw new IllegalStateException(
                    linesRead + " of " + lines + " lines were read, and " + counts + " of " + wordsRead + " counts");
            }
            return "{\"records\": " + lines + ", \"size_bytes\": 0, \"seconds\": " + seconds + "}";
        } finally {
            streams.close();
        }
    }

    private static Properties settings(String bootstrap, String application, short replicas) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, COMMIT_MS);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, THREADS);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, (int) replicas);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("consumer.auto.offset.reset", "earliest");
        return settings;
    }
}
