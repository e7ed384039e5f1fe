package org.apache.kafka.common.test;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import kafka.server.BrokerServer;
import kafka.server.ControllerServer;
import kafka.server.KafkaConfig;
import odradek.suites.Node;
import odradek.suites.NotPointable;
import odradek.suites.Wait;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metadata.FeatureLevelRecord;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.metadata.storage.Formatter;
import org.apache.kafka.server.common.ApiMessageAndVersion;
import org.apache.kafka.server.common.Feature;
import org.apache.kafka.server.common.MetadataVersion;

/** Takes the place of Apache Kafka's class of this name, which starts brokers inside the JVM: starts processes of Odradek. */
public class KafkaClusterTestKit implements AutoCloseable {
    private static final String KRAFT_VERSION = "kraft.version";
    private static final long BROKERS_WITHIN_MS = 60_000;

    /** Options of the authorizer, which KafkaConfig does not declare. */
    private static final Set<String> AUTHORIZER_OPTIONS = Set.of("super.users", "allow.everyone.if.no.acl.found");

    /** Options whose values are Java classes that a broker loads. */
    private static final List<String> CLASS_OPTIONS = List.of("create.topic.policy.class.name", "alter.config.policy.class.name",
            "client.quota.callback.class", "principal.builder.class", "metric.reporters", "group.consumer.assignors",
            "group.share.assignors", "remote.log.storage.manager.class.name");

    /** The name of the next cluster's folder of logs. */
    public static volatile String label = "cluster";

    private static int clusters = 0;

    private final TestKitNodes nodes;
    private final Map<String, Object> settings;
    private final Map<Integer, Node> brokers = new TreeMap<>();
    private final Map<Integer, Integer> ports = new TreeMap<>();
    /** The addresses of the voters, which are combined nodes or processes of their own. */
    private final Map<Integer, String> voters = new TreeMap<>();
    /** The controllers that are no brokers. */
    private final Map<Integer, Node> controllers = new TreeMap<>();
    private boolean isFormatted;

    public static class Builder {
        private final TestKitNodes nodes;
        private final Map<String, Object> settings = new HashMap<>();

        public Builder(TestKitNodes nodes) {
            this.nodes = nodes;
        }

        public Builder setConfigProp(String key, Object value) {
            settings.put(key, value);
            return this;
        }

        /** Odradek's directories are formatted with static voters. */
        public Builder setStandalone(boolean standalone) {
            return this;
        }

        public Builder setInitialVoterSet(Map<Integer, Uuid> voters) {
            return this;
        }

        public Builder setDeleteOnClose(boolean delete) {
            return this;
        }

        public KafkaClusterTestKit build() throws Exception {
            return new KafkaClusterTestKit(nodes, settings);
        }
    }

    private KafkaClusterTestKit(TestKitNodes nodes, Map<String, Object> settings) throws Exception {
        rejectClasses(settings);
        for (TestKitNode node : nodes.brokerNodes().values())
            rejectClasses(node.propertyOverrides());
        this.nodes = nodes;
        this.settings = settings;
        Path folder = nextFolder();
        for (int id : nodes.controllerNodes().keySet())
            voters.put(id, "localhost:" + Node.freePort());
        for (int id : nodes.brokerNodes().keySet())
            ports.put(id, Node.freePort());
        for (TestKitNode node : nodes.brokerNodes().values())
            brokers.put(node.id(), new Node(node.id(), properties(node, voters.containsKey(node.id()), true), folder));
        for (TestKitNode node : nodes.controllerNodes().values()) {
            if (!brokers.containsKey(node.id()))
                controllers.put(node.id(), new Node(node.id(), properties(node, true, false), folder));
        }
    }

    private static void rejectClasses(Map<String, ?> settings) {
        for (String option : CLASS_OPTIONS) {
            if (settings.containsKey(option) && text(settings.get(option)).contains("org.apache.kafka."))
                throw new NotPointable("a Java class in the broker: " + option);
        }
        if (settings.containsKey("remote.log.storage.system.enable") && text(settings.get("remote.log.storage.system.enable")).equals("true"))
            throw new NotPointable("Java classes in the broker: remote storage");
    }

    private static synchronized Path nextFolder() throws IOException {
        String name = label.replaceAll("[^A-Za-z0-9._-]+", "_");
        Path folder = Path.of(System.getProperty("odradek.logs"), String.format("%03d-%s", clusters++, name));
        return Files.createDirectories(folder);
    }

    private Properties properties(TestKitNode node, boolean controls, boolean serves) throws IOException {
        String client = nodes.brokerListenerName().value();
        String quorum = nodes.controllerListenerName().value();
        Map<String, String> all = new LinkedHashMap<>();
        settings.forEach((key, value) -> all.put(key, text(value)));
        addSasl(all, controls, serves);
        all.putIfAbsent("listener.security.protocol.map", client + ":" + nodes.brokerListenerProtocol().name + ","
                + quorum + ":" + nodes.controllerListenerProtocol().name);
        all.put("listeners", listeners(all.getOrDefault("listeners", client + "://localhost:0," + quorum + "://localhost:0"),
                node.id(), controls, serves));
        if (serves)
            all.putIfAbsent("inter.broker.listener.name", client);
        all.putIfAbsent("controller.listener.names", quorum);
        all.putIfAbsent("log.cleaner.dedupe.buffer.size", "2097152");
        all.put("controller.quorum.voters", voters.entrySet().stream()
                .map(voter -> voter.getKey() + "@" + voter.getValue()).collect(Collectors.joining(",")));
        all.put("process.roles", serves && controls ? "broker,controller" : serves ? "broker" : "controller");
        all.put("node.id", String.valueOf(node.id()));
        all.put("log.dirs", serves ? String.join(",", node.logDataDirectories()) : node.metadataDirectory());
        all.putAll(node.propertyOverrides());
        all.keySet().removeIf(KafkaClusterTestKit::isNoOption);
        for (String store : List.of("ssl.keystore", "ssl.truststore"))
            convert(all.get(store + ".location"), all.get(store + ".password"));
        Properties properties = new Properties();
        properties.putAll(all);
        return properties;
    }

    /** Some tests set names that Apache Kafka ignores because it has no such option. Odradek does not start with them. */
    private static boolean isNoOption(String name) {
        return !KafkaConfig.configDef().names().contains(name) && !name.startsWith("listener.name.") && !AUTHORIZER_OPTIONS.contains(name);
    }

    /** Converts a store of Java's own format, which Odradek does not read, into PKCS12, which Java reads as JKS, too. */
    private static void convert(String location, String password) throws IOException {
        if (location == null)
            return;
        char[] secret = password.toCharArray();
        File file = new File(location);
        try {
            KeyStore found = KeyStore.getInstance(file, secret);
            KeyStore converted = KeyStore.getInstance("PKCS12");
            converted.load(null, secret);
            for (String alias : Collections.list(found.aliases())) {
                if (found.isKeyEntry(alias))
                    converted.setKeyEntry(alias, found.getKey(alias, secret), secret, found.getCertificateChain(alias));
                else
                    converted.setCertificateEntry(alias, found.getCertificate(alias));
            }
            try (OutputStream out = new FileOutputStream(file)) {
                converted.store(out, secret);
            }
        } catch (GeneralSecurityException e) {
            throw new IOException(location, e);
        }
    }

    private static String text(Object value) {
        if (value instanceof Password)
            return ((Password) value).value();
        if (value instanceof List)
            return ((List<?>) value).stream().map(String::valueOf).collect(Collectors.joining(","));
        return String.valueOf(value);
    }

    /** Adds the users and the authorizer that Apache Kafka's own cluster of tests has with SASL. */
    private void addSasl(Map<String, String> all, boolean controls, boolean serves) {
        boolean clientIsSasl = nodes.brokerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT;
        boolean quorumIsSasl = nodes.controllerListenerProtocol() == SecurityProtocol.SASL_PLAINTEXT;
        if (!(serves && clientIsSasl) && !(controls && quorumIsSasl))
            return;
        all.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        all.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        all.putIfAbsent("sasl.mechanism.controller.protocol", "PLAIN");
        all.putIfAbsent("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        all.putIfAbsent("allow.everyone.if.no.acl.found", "false");
        all.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        String users = String.format("org.apache.kafka.common.security.plain.PlainLoginModule required "
                + "username=\"%1$s\" password=\"%2$s\" user_%1$s=\"%2$s\" user_%3$s=\"%4$s\";",
                JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD, JaasUtils.KAFKA_PLAIN_USER1,
                JaasUtils.KAFKA_PLAIN_USER1_PASSWORD);
        if (serves)
            all.putIfAbsent(jaas(nodes.brokerListenerName().value()), users);
        if (quorumIsSasl)
            all.putIfAbsent(jaas(nodes.controllerListenerName().value()), users);
    }

    private static String jaas(String listener) {
        return "listener.name." + listener.toLowerCase() + ".plain.sasl.jaas.config";
    }

    /** Returns the node's listeners, with ports that stay the same over restarts. */
    private String listeners(String asked, int id, boolean controls, boolean serves) throws IOException {
        String client = nodes.brokerListenerName().value();
        String quorum = nodes.controllerListenerName().value();
        List<String> listeners = new ArrayList<>();
        for (String listener : asked.split(",")) {
            String name = listener.substring(0, listener.indexOf("://"));
            if (name.equals(quorum) && controls)
                listeners.add(quorum + "://" + voters.get(id));
            if (!name.equals(quorum) && serves) {
                int port = name.equals(client) ? ports.get(id) : Node.freePort();
                if (!asked.contains(client + "://"))
                    ports.put(id, port);
                listeners.add(name + "://localhost:" + port);
            }
        }
        return String.join(",", listeners);
    }

    private List<Node> processesInOrder() {
        List<Node> all = new ArrayList<>(controllers.values());
        all.addAll(brokers.values());
        return all;
    }

    public void format() throws Exception {
        if (isFormatted)
            return;
        isFormatted = true;
        for (Node node : processesInOrder())
            format(node);
    }

    /** The newest level of metadata.version is Odradek's, where a test asks for an unstable one. */
    private void format(Node node) throws Exception {
        MetadataVersion asked = nodes.bootstrapMetadata().metadataVersion();
        MetadataVersion newest = MetadataVersion.latestProduction();
        Formatter formatter = new Formatter().setPrintStream(new PrintStream(OutputStream.nullOutputStream()))
                .setClusterId(nodes.clusterId()).setNodeId(node.id)
                .setReleaseVersion(asked.isLessThan(newest) ? asked : newest)
                .setUnstableFeatureVersionsEnabled(true).setIgnoreFormatted(false)
                .setSupportedFeatures(Feature.PRODUCTION_FEATURES)
                .setControllerListenerName(nodes.controllerListenerName().value());
        for (Feature feature : Feature.PRODUCTION_FEATURES) {  // the records have no levels of 0
            if (!feature.featureName().equals(KRAFT_VERSION))
                formatter.setFeatureLevel(feature.featureName(), (short) 0);
        }
        for (ApiMessageAndVersion record : nodes.bootstrapMetadata().records()) {
            if (record.message() instanceof FeatureLevelRecord) {
                FeatureLevelRecord level = (FeatureLevelRecord) record.message();
                if (!level.name().equals(MetadataVersion.FEATURE_NAME) && !level.name().equals(KRAFT_VERSION))
                    formatter.setFeatureLevel(level.name(), level.featureLevel());
            }
        }
        String[] directories = node.properties.getProperty("log.dirs").split(",");
        for (String directory : directories)
            formatter.addDirectory(directory);
        formatter.setMetadataLogDirectory(directories[0]);
        formatter.run();
    }

    public void startup() {
        try {
            for (Node node : processesInOrder())
                node.launch();
            for (Node node : processesInOrder())
                node.awaitReady();
        } catch (IOException | InterruptedException | RuntimeException e) {
            close();
            throw e instanceof RuntimeException ? (RuntimeException) e : new RuntimeException(e);
        }
    }

    public void waitForReadyBrokers() throws InterruptedException {
        try (Admin admin = admin(tls())) {
            Wait.until(() -> admin.describeCluster().nodes().get().size() == brokers.size(), BROKERS_WITHIN_MS, "brokers are missing");
        }
    }

    /** Returns the options of a client that the broker's listener needs, if it has TLS. */
    private Map<String, Object> tls() {
        String protocols = text(settings.getOrDefault("listener.security.protocol.map", ""));
        if (!List.of(protocols.split(",")).contains(nodes.brokerListenerName().value() + ":SSL"))
            return Map.of();
        Map<String, Object> options = new HashMap<>(Map.of(CommonClientConfigs.SECURITY_PROTOCOL_CONFIG, "SSL"));
        settings.forEach((key, value) -> {
            if (key.startsWith("ssl."))
                options.put(key, value);
        });
        return options;
    }

    public Admin admin() {
        return admin(Map.of());
    }

    public Admin admin(Map<String, Object> configs) {
        return admin(configs, false);
    }

    public Admin admin(Map<String, Object> configs, boolean ofControllers) {
        Map<String, Object> all = new HashMap<>(configs);
        if (ofControllers)
            all.putIfAbsent(AdminClientConfig.BOOTSTRAP_CONTROLLERS_CONFIG, bootstrapControllers());
        else
            all.putIfAbsent(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG, bootstrapServers());
        return Admin.create(all);
    }

    public String bootstrapServers() {
        return ports.values().stream().map(port -> "localhost:" + port).collect(Collectors.joining(","));
    }

    public String bootstrapControllers() {
        return String.join(",", voters.values());
    }

    public Map<Integer, Node> processes() {
        return brokers;
    }

    public int port(int id) {
        return ports.get(id);
    }

    public List<Integer> controllerPorts() {
        return voters.values().stream().map(address -> Integer.parseInt(address.split(":")[1])).collect(Collectors.toList());
    }

    public Map<Integer, ControllerServer> controllers() {
        return new KeysOnly<>(nodes.controllerNodes().keySet());
    }

    public Map<Integer, BrokerServer> brokers() {
        return new KeysOnly<>(brokers.keySet());
    }

    public TestKitNodes nodes() {
        return nodes;
    }

    public MockFaultHandler fatalFaultHandler() {
        return new MockFaultHandler("fatal");
    }

    public MockFaultHandler nonFatalFaultHandler() {
        return new MockFaultHandler("nonFatal");
    }

    /** Stops the brokers first: they tell the controllers. */
    @Override
    public void close() {
        try {
            brokers.values().forEach(Node::stop);
            for (Node node : brokers.values())
                node.awaitStopped();
            controllers.values().forEach(Node::stop);
            for (Node node : controllers.values())
                node.awaitStopped();
            Utils.delete(new File(nodes.baseDirectory()));
        } catch (IOException | InterruptedException e) {
            throw new RuntimeException(e);
        }
    }

    /** A map with the ids of nodes, but without their objects. */
    private static final class KeysOnly<V> extends AbstractMap<Integer, V> {
        private final Set<Integer> keys;

        KeysOnly(Set<Integer> keys) {
            this.keys = keys;
        }

        @Override
        public Set<Integer> keySet() {
            return keys;
        }

        @Override
        public int size() {
            return keys.size();
        }

        @Override
        public V get(Object key) {
            throw NotPointable.objects("KafkaClusterTestKit");
        }

        @Override
        public Set<Entry<Integer, V>> entrySet() {
            throw NotPointable.objects("KafkaClusterTestKit");
        }
    }
}
