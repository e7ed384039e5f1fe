import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Instances of an application that counts values, with a repartition topic and a changelog, driven by lines on standard
 * input. Commands, words separated by spaces:
 *
 *     open NAME IN OUT KEY=VALUE…    starts an instance
 *     state NAME                     answers its state
 *     tasks NAME                     answers `active ID` or `standby ID` for each task
 *     close NAME
 *
 * Each closes with `done` or `error CLASS: MESSAGE`.
 */
public final class Streams {
    private static final Map<String, KafkaStreams> INSTANCES = new HashMap<>();
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

    private static void run(String[] words) {
        switch (words[0]) {
            case "open": open(words); break;
            case "state": out.println(INSTANCES.get(words[1]).state()); break;
            case "tasks": tasks(INSTANCES.get(words[1])); break;
            case "close": INSTANCES.remove(words[1]).close(Duration.ofSeconds(20)); break;
            default: throw new IllegalArgumentException(words[0]);
        }
    }

    private static void open(String[] words) {
        Properties settings = new Properties();
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        for (int index = 4; index < words.length; index++) {
            String[] pair = words[index].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(words[2])
            .groupBy((key, value) -> value, Grouped.as("by-value"))
            .count(Named.as("count"), Materialized.as("counts"))
            .toStream()
            .mapValues(String::valueOf)
            .to(words[3], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams instance = new KafkaStreams(builder.build(), settings);
        INSTANCES.put(words[1], instance);
        instance.start();
    }

    private static void tasks(KafkaStreams instance) {
        TreeSet<String> tasks = new TreeSet<>();
        for (ThreadMetadata thread : instance.metadataForLocalThreads()) {
            thread.activeTasks().forEach(task -> tasks.add("active " + task.taskId()));
            thread.standbyTasks().forEach(task -> tasks.add("standby " + task.taskId()));
        }
        tasks.forEach(out::println);
    }
}
