package odradek.suites;

import java.io.File;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import kafka.cluster.Partition;
import kafka.log.LogManager;
import kafka.server.ReplicaManager;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.group.GroupCoordinator;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.mockito.Mockito;
import org.mockito.invocation.InvocationOnMock;
import scala.Option;
import scala.jdk.javaapi.CollectionConverters;

/** Objects of Apache Kafka's broker that answer from the files of a broker and from Admin. Other calls are not pointable. */
public final class Views {
    private interface Reader {
        Object read(InvocationOnMock call) throws Exception;
    }

    private final int brokerId;
    private final List<File> directories;
    private final Supplier<Admin> admin;

    public Views(int brokerId, Properties properties, Supplier<Admin> admin) {
        this.brokerId = brokerId;
        this.directories = Arrays.stream(properties.getProperty("log.dirs").split(",")).map(File::new).collect(Collectors.toList());
        this.admin = admin;
    }

    public LogManager logManager() {
        return view(LogManager.class, Map.of(
                "getLog", call -> log(call.getArgument(0)),
                "liveLogDirs", call -> CollectionConverters.asScala(directories).toSeq()));
    }

    public ReplicaManager replicaManager() {
        return view(ReplicaManager.class, Map.of(
                "logManager", call -> logManager(),
                "localLog", call -> log(call.getArgument(0)),
                "onlinePartition", call -> exists(call.getArgument(0)) ? Option.apply(partition(call.getArgument(0))) : Option.empty()));
    }

    public GroupCoordinator groupCoordinator() {
        Properties configs = new Properties();
        configs.putAll(Map.of("cleanup.policy", "compact", "compression.type", "producer", "segment.bytes", "104857600"));
        return view(GroupCoordinator.class, Map.of("groupMetadataTopicConfigs", call -> configs));
    }

    private static <T> T view(Class<T> type, Map<String, Reader> readers) {
        return Mockito.mock(type, call -> {
            String method = call.getMethod().getName();
            if (method.equals("toString"))
                return "a view of " + type.getSimpleName();
            if (!readers.containsKey(method))
                throw NotPointable.objects(type.getSimpleName() + "." + method);
            return readers.get(method).read(call);
        });
    }

    private boolean exists(TopicPartition partition) {
        return directories.stream().anyMatch(directory -> new File(directory, partition.toString()).isDirectory());
    }

    private Option<UnifiedLog> log(TopicPartition partition) {
        if (!exists(partition))
            return Option.empty();
        return Option.apply(view(UnifiedLog.class, Map.of("highWatermark", call -> highWatermark(partition))));
    }

    private long highWatermark(TopicPartition partition) throws ExecutionException, InterruptedException {
        try (Admin client = admin.get()) {
            return client.listOffsets(Map.of(partition, OffsetSpec.latest())).partitionResult(partition).get().offset();
        }
    }

    private Partition partition(TopicPartition partition) {
        return view(Partition.class, Map.of("leaderIdIfLocal", call -> leads(partition) ? Option.apply(brokerId) : Option.empty()));
    }

    private boolean leads(TopicPartition partition) throws ExecutionException, InterruptedException {
        try (Admin client = admin.get()) {
            Stream<Node> leaders = client.describeTopics(List.of(partition.topic())).allTopicNames().get().get(partition.topic())
                    .partitions().stream().filter(described -> described.partition() == partition.partition())
                    .map(described -> described.leader());
            return leaders.anyMatch(leader -> leader != null && leader.id() == brokerId);
        }
    }
}
