import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.Utils;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Answers lines of JSON with lines of JSON: what Kafka's assignors make of a group, or the hash of a topic or a group.
 * A topic's id is its number. Everything is iterated in the order of the request.
 */
public class Assignors {
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode asked = JSON.readTree(line);
            out.println(asked.has("assignor") ? assign(asked) : asked.has("name") ? topicHash(asked) : groupHash(asked));
        }
        out.flush();
    }

    record Member(Set<Uuid> topics, Map<Uuid, Set<Integer>> assigned, String instance)
            implements MemberSubscription, MemberAssignment {
        public Optional<String> rackId() {
            return Optional.empty();
        }

        public Optional<String> instanceId() {
            return Optional.ofNullable(instance);
        }

        public Set<Uuid> subscribedTopicIds() {
            return topics;
        }

        public Map<Uuid, Set<Integer>> partitions() {
            return assigned;
        }
    }

    record Group(Map<String, Member> members, boolean homogeneous) implements GroupSpec {
        public Collection<String> memberIds() {
            return members.keySet();
        }

        public SubscriptionType subscriptionType() {
            return homogeneous ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }

        public boolean isPartitionAssigned(Uuid topic, int partition) {
            return members.values().stream()
                .anyMatch(member -> member.assigned.getOrDefault(topic, Set.of()).contains(partition));
        }

        public boolean isPartitionAssignable(Uuid topic, int partition) {
            return true;
        }

        public MemberSubscription memberSubscription(String id) {
            return members.get(id);
        }

        public MemberAssignment memberAssignment(String id) {
            return members.get(id);
        }
    }

    record Topics(JsonNode counts) implements SubscribedTopicDescriber {
        public int numPartitions(Uuid topic) {
            return counts.path(Long.toString(topic.getLeastSignificantBits())).asInt(-1);
        }

        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }

    static JsonNode assign(JsonNode asked) {
        ConsumerGroupPartitionAssignor assignor =
            asked.get("assignor").asText().equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, Member> members = new LinkedHashMap<>();
        for (JsonNode each : asked.get("members")) {
            members.put(each.get("id").asText(), member(each));
        }
        Group group = new Group(members, asked.get("homogeneous").asBoolean());
        Map<String, MemberAssignment> assigned = assignor.assign(group, new Topics(asked.get("topics"))).members();
        ObjectNode answer = JSON.createObjectNode();
        for (String id : members.keySet()) {
            Map<Long, Set<Integer>> partitions = new TreeMap<>();
            if (assigned.containsKey(id)) {
                assigned.get(id).partitions().forEach(
                    (topic, indexes) -> partitions.put(topic.getLeastSignificantBits(), new TreeSet<>(indexes)));
            }
            answer.set(id, JSON.valueToTree(partitions));
        }
        return answer;
    }

    static Member member(JsonNode each) {
        Set<Uuid> topics = new LinkedHashSet<>();
        each.get("topics").forEach(topic -> topics.add(new Uuid(0, topic.asLong())));
        Map<Uuid, Set<Integer>> assigned = new LinkedHashMap<>();
        each.get("assigned").fields().forEachRemaining(entry -> {
            Set<Integer> partitions = new LinkedHashSet<>();
            entry.getValue().forEach(partition -> partitions.add(partition.asInt()));
            assigned.put(new Uuid(0, Long.parseLong(entry.getKey())), partitions);
        });
        String instance = each.get("instance").isNull() ? null : each.get("instance").asText();
        return new Member(topics, Collections.unmodifiableMap(assigned), instance);
    }

    static long topicHash(JsonNode asked) {
        String name = asked.get("name").asText();
        Uuid id = new Uuid(asked.get("high").asLong(), asked.get("low").asLong());
        CoordinatorMetadataImage.TopicMetadata topic = answering(CoordinatorMetadataImage.TopicMetadata.class, (method, values) ->
            switch (method) {
                case "name" -> name;
                case "id" -> id;
                case "partitionCount" -> asked.get("racks").size();
                default -> racks(asked.get("racks").get((int) values[0]));
            });
        CoordinatorMetadataImage image =
            answering(CoordinatorMetadataImage.class, (method, values) -> Optional.of(topic));
        return Utils.computeTopicHash(name, image);
    }

    static List<String> racks(JsonNode names) {
        List<String> racks = new ArrayList<>();
        names.forEach(name -> racks.add(name.asText()));
        return racks;
    }

    static long groupHash(JsonNode asked) {
        Map<String, Long> hashes = new LinkedHashMap<>();
        asked.get("hashes").fields().forEachRemaining(entry -> hashes.put(entry.getKey(), entry.getValue().asLong()));
        return Utils.computeGroupHash(hashes);
    }

    interface Answer {
        Object to(String method, Object[] values);
    }

    static <T> T answering(Class<T> type, Answer answer) {
        return type.cast(Proxy.newProxyInstance(
            type.getClassLoader(), new Class<?>[] {type}, (proxy, method, values) -> answer.to(method.getName(), values)));
    }
}
