package org.apache.kafka.common.test.junit;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kafka.server.ControllerServer;
import kafka.server.KafkaBroker;
import kafka.server.KafkaConfig;
import odradek.suites.Node;
import odradek.suites.NotPointable;
import odradek.suites.Views;
import odradek.suites.Wait;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.QuorumInfo;
import org.apache.kafka.clients.consumer.GroupProtocol;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.network.ListenerName;
import org.apache.kafka.common.test.ClusterInstance;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;
import org.apache.kafka.common.test.api.ClusterConfig;
import org.apache.kafka.common.test.api.Type;
import org.apache.kafka.metadata.BrokerState;
import org.apache.kafka.metadata.LeaderAndIsr;
import org.apache.kafka.metadata.MetadataCache;
import org.apache.kafka.metadata.bootstrap.BootstrapMetadata;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;
import org.apache.kafka.server.fault.FaultHandlerException;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.AfterTestExecutionCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.Extension;
import org.junit.jupiter.api.extension.TestTemplateInvocationContext;

/** Takes the place of Apache Kafka's class of this name: gives a test a cluster of Odradek's processes. */
public class RaftClusterInvocationContext implements TestTemplateInvocationContext {
    private static final long WITHIN_MS = 60_000;
    private static final Set<ConfigEntry.ConfigSource> DYNAMIC = EnumSet.of(
            ConfigEntry.ConfigSource.DYNAMIC_BROKER_CONFIG, ConfigEntry.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG);

    private final String name;
    private final ClusterConfig config;
    private final boolean combined;

    public RaftClusterInvocationContext(String name, ClusterConfig config, boolean combined) {
        this.name = name;
        this.config = config;
        this.combined = combined;
    }

    @Override
    public String getDisplayName(int index) {
        return String.format("%s [%d] Odradek %s, %s", name, index, combined ? "combined" : "with controllers",
                String.join(",", config.displayTags()));
    }

    @Override
    public List<Extension> getAdditionalExtensions() {
        Processes cluster = new Processes(config, combined);
        return List.of(
                (BeforeEachCallback) context -> {
                    KafkaClusterTestKit.label = context.getRequiredTestClass().getSimpleName() + "." + context.getRequiredTestMethod().getName();
                    cluster.format();
                    if (config.isAutoStart())
                        cluster.start();
                },
                (AfterTestExecutionCallback) context -> cluster.stop(),
                (AfterEachCallback) context -> cluster.stop(),
                new ClusterInstanceParameterResolver(cluster));
    }

    private static final class Processes implements ClusterInstance {
        private final ClusterConfig config;
        private final boolean combined;
        private KafkaClusterTestKit kit;
        private boolean started;
        private boolean stopped;

        Processes(ClusterConfig config, boolean combined) {
            this.config = config;
            this.combined = combined;
        }

        void format() throws Exception {
            if (kit != null)
                return;
            KafkaClusterTestKit.Builder builder = new KafkaClusterTestKit.Builder(nodes());
            config.serverProperties().forEach(builder::setConfigProp);
            kit = builder.build();
            kit.format();
        }

        private TestKitNodes nodes() {
            Map<String, Short> levels = new TreeMap<>();
            for (Feature feature : Feature.PRODUCTION_FEATURES)
                levels.put(feature.featureName(), feature.defaultLevel(config.metadataVersion()));
            config.features().forEach((feature, level) -> levels.put(feature.featureName(), level));
            levels.put(MetadataVersion.FEATURE_NAME, config.metadataVersion().featureLevel());
            return new TestKitNodes.Builder()
                    .setBootstrapMetadata(BootstrapMetadata.fromVersions(config.metadataVersion(), levels, "suite"))
                    .setCombined(combined)
                    .setNumBrokerNodes(config.numBrokers())
                    .setNumControllerNodes(config.numControllers())
                    .setNumDisksPerBroker(config.numDisksPerBroker())
                    .setPerServerProperties(config.perServerOverrideProperties())
                    .setBrokerListenerName(config.brokerListenerName())
                    .setBrokerSecurityProtocol(config.brokerSecurityProtocol())
                    .setControllerListenerName(config.controllerListenerName())
                    .setControllerSecurityProtocol(config.controllerSecurityProtocol())
                    .build();
        }

        @Override
        public void start() {
            try {
                format();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
            if (!started) {
                started = true;
                kit.startup();
            }
        }

        @Override
        public void stop() {
            if (kit != null && !stopped) {
                stopped = true;
                kit.close();
            }
        }

        @Override
        public boolean started() {
            return started;
        }

        @Override
        public boolean stopped() {
            return stopped;
        }

        @Override
        public Type type() {
            return combined ? Type.CO_KRAFT : Type.KRAFT;
        }

        @Override
        public ClusterConfig config() {
            return config;
        }

        private Node process(int id) {
            Node node = kit.processes().get(id);
            if (node == null)
                throw new IllegalArgumentException("no broker " + id);
            return node;
        }

        @Override
        public void shutdownBroker(int id) {
            try {
                process(id).stop();
                process(id).awaitStopped();
            } catch (InterruptedException e) {
                throw new RuntimeException(e);
            }
        }

        @Override
        public void startBroker(int id) {
            try {
                process(id).launch();
                process(id).awaitReady();
            } catch (RuntimeException e) {
                throw e;
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        }

        /** Returns an object with the parts of a broker that are visible from outside. */
        private KafkaBroker outside(int id) {
            return (KafkaBroker) Proxy.newProxyInstance(KafkaBroker.class.getClassLoader(), new Class<?>[] {KafkaBroker.class},
                    (self, method, arguments) -> {
                        switch (method.getName()) {
                            case "config":
                                return options(id);
                            case "boundPort":
                                return kit.port(id);
                            case "clusterId":
                                return clusterId();
                            case "isShutdown":
                                return !process(id).isAlive();
                            case "brokerState":
                                return process(id).isAlive() ? BrokerState.RUNNING : BrokerState.SHUTTING_DOWN;  // as after a shutdown in the JVM
                            case "shutdown":
                                shutdownBroker(id);
                                return null;
                            case "startup":
                                startBroker(id);
                                return null;
                            case "awaitShutdown":
                                process(id).awaitStopped();
                                return null;
                            case "logManager":
                                return views(id).logManager();
                            case "replicaManager":
                                return views(id).replicaManager();
                            case "groupCoordinator":
                                return views(id).groupCoordinator();
                            case "metadataCache":
                                return cache();
                            case "hashCode":
                                return id;
                            case "equals":
                                return self == arguments[0];
                            case "toString":
                                return "Odradek broker " + id;
                            default:
                                throw NotPointable.objects("KafkaBroker." + method.getName());
                        }
                    });
        }

        private Views views(int id) {
            return new Views(id, process(id).properties, this::admin);
        }

        /** Returns the options that are in force: the properties, and what Admin has set since. */
        private KafkaConfig options(int id) throws ExecutionException, InterruptedException {
            Map<Object, Object> options = new HashMap<>(process(id).properties);
            options.put("controller.quorum.bootstrap.servers", kit.bootstrapControllers());
            if (process(id).isAlive())
                options.putAll(dynamicOptions(id));
            return new KafkaConfig(options, false);
        }

        private Map<String, String> dynamicOptions(int id) throws ExecutionException, InterruptedException {
            ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, String.valueOf(id));
            try (Admin admin = admin()) {
                return admin.describeConfigs(List.of(broker)).all().get().get(broker).entries().stream()
                        .filter(entry -> DYNAMIC.contains(entry.source()) && entry.value() != null)
                        .collect(Collectors.toMap(ConfigEntry::name, ConfigEntry::value));
            }
        }

        /** Returns a metadata cache with the brokers that are alive, and with topics' partitions. It asks any broker. */
        private MetadataCache cache() {
            return (MetadataCache) Proxy.newProxyInstance(MetadataCache.class.getClassLoader(), new Class<?>[] {MetadataCache.class},
                    (self, method, arguments) -> {
                        switch (method.getName()) {
                            case "getAliveBrokerNodes":
                                try (Admin admin = admin()) {
                                    return List.copyOf(admin.describeCluster().nodes().get());
                                }
                            case "numPartitions":
                                return partitions((String) arguments[0]).map(List::size);
                            case "getLeaderAndIsr":
                                return partitions((String) arguments[0]).flatMap(all -> all.stream()
                                        .filter(partition -> partition.partition() == (int) arguments[1]).findFirst()).map(Processes::leaderAndIsr);
                            default:
                                throw NotPointable.objects("MetadataCache." + method.getName());
                        }
                    });
        }

        private Optional<List<TopicPartitionInfo>> partitions(String topic) throws ExecutionException, InterruptedException {
            try (Admin admin = admin()) {
                return Optional.of(admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions());
            } catch (ExecutionException e) {
                if (e.getCause() instanceof UnknownTopicOrPartitionException)
                    return Optional.empty();
                throw e;
            }
        }

        private static LeaderAndIsr leaderAndIsr(TopicPartitionInfo partition) {
            List<Integer> isr = partition.isr().stream().map(replica -> replica.id()).collect(Collectors.toList());
            return new LeaderAndIsr(partition.leader() == null ? LeaderAndIsr.NO_LEADER : partition.leader().id(), isr);
        }

        @Override
        public Map<Integer, KafkaBroker> brokers() {
            return kit.processes().keySet().stream().collect(Collectors.toMap(id -> id, this::outside));
        }

        @Override
        public Map<Integer, ControllerServer> controllers() {
            throw NotPointable.objects("controllers()");
        }

        @Override
        public Set<Integer> controllerIds() {
            return kit.controllers().keySet();
        }

        @Override
        public Set<Integer> brokerIds() {
            return new TreeSet<>(kit.processes().keySet());  // tests remove ids from it
        }

        @Override
        public ListenerName clientListener() {
            return config.brokerListenerName();
        }

        @Override
        public ListenerName controllerListenerName() {
            return config.controllerListenerName();
        }

        @Override
        public String bootstrapServers() {
            return kit.bootstrapServers();
        }

        @Override
        public String bootstrapControllers() {
            return kit.bootstrapControllers();
        }

        @Override
        public List<Integer> controllerBoundPorts() {
            return kit.controllerPorts();
        }

        @Override
        public List<Integer> brokerBoundPorts() {
            return kit.processes().keySet().stream().map(kit::port).collect(Collectors.toList());
        }

        @Override
        public String clusterId() {
            return kit.nodes().clusterId();
        }

        @Override
        public Set<GroupProtocol> supportedGroupProtocols() {
            String protocols = config.serverProperties().getOrDefault("group.coordinator.rebalance.protocols", "classic,consumer");
            short level = config.features().getOrDefault(Feature.GROUP_VERSION, Feature.GROUP_VERSION.defaultLevel(config.metadataVersion()));
            return protocols.contains("consumer") && level > 0 ? Set.of(GroupProtocol.CLASSIC, GroupProtocol.CONSUMER) : Set.of(GroupProtocol.CLASSIC);
        }

        @Override
        public Optional<FaultHandlerException> firstFatalException() {
            return Optional.empty();
        }

        @Override
        public Optional<FaultHandlerException> firstNonFatalException() {
            return Optional.empty();
        }

        @Override
        public void waitForReadyBrokers() throws InterruptedException {
            kit.waitForReadyBrokers();
        }

        @Override
        public void waitTopicCreation(String topic, int partitions) throws InterruptedException {
            Wait.until(() -> hasLeaders(topic, partitions), WITHIN_MS, topic + " was not created");
            ensureConsistentMetadata();
        }

        /** A partition without a leader is as it should be if no broker with a replica is alive. */
        private boolean hasLeaders(String topic, int count) throws Exception {
            Set<Integer> alive = alive().stream().map(node -> node.id).collect(Collectors.toSet());
            return partitions(topic).filter(all -> all.size() == count && all.stream().allMatch(partition ->
                    partition.leader() != null && !partition.leader().isEmpty()
                    || partition.replicas().stream().noneMatch(replica -> alive.contains(replica.id())))).isPresent();
        }

        @Override
        public void waitTopicDeletion(String topic) throws InterruptedException {
            try (Admin admin = admin()) {
                Wait.until(() -> !admin.listTopics().names().get().contains(topic), WITHIN_MS, topic + " was not deleted");
            }
            ensureConsistentMetadata();
            for (Node node : alive()) {
                for (String directory : node.properties.getProperty("log.dirs").split(","))
                    Wait.until(() -> !new File(directory, topic + "-0").exists(), WITHIN_MS, directory + " still has " + topic);
            }
        }

        private List<Node> alive() {
            return kit.processes().values().stream().filter(Node::isAlive).collect(Collectors.toList());
        }

        /** Waits until the brokers that are alive have all metadata that the controller has now. */
        @Override
        public void ensureConsistentMetadata() throws InterruptedException {
            Set<Integer> alive = alive().stream().map(node -> node.id).collect(Collectors.toSet());
            try (Admin admin = admin()) {
                QuorumInfo now = admin.describeMetadataQuorum().quorumInfo().get();
                long end = now.voters().stream().filter(voter -> voter.replicaId() == now.leaderId()).findFirst().orElseThrow().logEndOffset();
                Wait.until(() -> admin.describeMetadataQuorum().quorumInfo().get().observers().stream()
                        .filter(observer -> alive.contains(observer.replicaId())).allMatch(observer -> observer.logEndOffset() >= end),
                        WITHIN_MS, "brokers are behind the controller");
                Thread.sleep(50);  // a broker may have fetched a record that it has not applied yet
            } catch (ExecutionException e) {
                throw new RuntimeException(e.getCause());
            }
        }

        @Override
        public void ensureConsistentMetadata(Collection<KafkaBroker> brokers, Collection<ControllerServer> controllers) throws InterruptedException {
            ensureConsistentMetadata();
        }

        @Override
        public List<Authorizer> authorizers() {
            throw NotPointable.objects("authorizers()");
        }

        @Override
        public void waitAcls(AclBindingFilter filter, Collection<AccessControlEntry> entries) throws InterruptedException {
            Set<AccessControlEntry> expected = new HashSet<>(entries);
            try (Admin admin = admin()) {
                Wait.until(() -> admin.describeAcls(filter).values().get().stream().map(AclBinding::entry)
                        .collect(Collectors.toSet()).equals(expected), WITHIN_MS, "other ACLs than " + expected);
            }
            ensureConsistentMetadata();
        }
    }
}
