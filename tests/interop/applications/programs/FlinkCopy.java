import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.Stream;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.serialization.SerializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ExternalizedCheckpointRetention;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.sink.TransactionNamingStrategy;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.reader.deserializer.KafkaRecordDeserializationSchema;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.Collector;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/** Apache Flink: a job that copies a topic with checkpoints, exactly once. Arguments: bootstrap, folder, input, output. */
public final class FlinkCopy {
    public static void main(String[] arguments) throws Exception {
        Path checkpoints = Files.createDirectories(Path.of(arguments[1]));
        Configuration settings = new Configuration();
        settings.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, checkpoints.toUri().toString());
        settings.set(CheckpointingOptions.EXTERNALIZED_CHECKPOINT_RETENTION,
            ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION);
        settings.set(RestartStrategyOptions.RESTART_STRATEGY, "none");  // the process ends, and starts again
        newest(checkpoints).ifPresent(path ->
            settings.set(StateRecoveryOptions.SAVEPOINT_PATH, path.toUri().toString()));
        StreamExecutionEnvironment environment = StreamExecutionEnvironment.createLocalEnvironment(2, settings);
        environment.enableCheckpointing(500);
        KafkaSource<String[]> source = KafkaSource.<String[]>builder()
            .setBootstrapServers(arguments[0]).setTopics(arguments[2]).setGroupId("flink-copy")
            .setStartingOffsets(OffsetsInitializer.earliest()).setDeserializer(new Pair()).build();
        KafkaSink<String[]> sink = KafkaSink.<String[]>builder()
            .setBootstrapServers(arguments[0]).setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .setTransactionalIdPrefix("flink-copy").setTransactionNamingStrategy(TransactionNamingStrategy.POOLING)
            .setProperty("transaction.timeout.ms", "60000")
            .setRecordSerializer(KafkaRecordSerializationSchema.<String[]>builder().setTopic(arguments[3])
                .setKeySerializationSchema(new Part(0)).setValueSerializationSchema(new Part(1)).build())
            .build();
        environment.fromSource(source, WatermarkStrategy.noWatermarks(), "input").sinkTo(sink);
        environment.execute();
    }

    /** Returns the newest complete checkpoint. */
    private static Optional<Path> newest(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            return files.filter(file -> file.endsWith("_metadata")).max(Comparator.comparing(FlinkCopy::modified))
                .map(Path::getParent);
        }
    }

    private static FileTime modified(Path file) {
        try {
            return Files.getLastModifiedTime(file);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** A record's key and value. */
    private static final class Pair implements KafkaRecordDeserializationSchema<String[]> {
        @Override
        public void deserialize(ConsumerRecord<byte[], byte[]> record, Collector<String[]> out) {
            out.collect(new String[] {text(record.key()), text(record.value())});
        }

        @Override
        public TypeInformation<String[]> getProducedType() {
            return Types.OBJECT_ARRAY(Types.STRING);
        }
    }

    /** The key or the value of a pair, by its index. */
    private static final class Part implements SerializationSchema<String[]> {
        private final int index;

        Part(int index) {
            this.index = index;
        }

        @Override
        public byte[] serialize(String[] pair) {
            return pair[index].getBytes(StandardCharsets.UTF_8);
        }
    }
}
