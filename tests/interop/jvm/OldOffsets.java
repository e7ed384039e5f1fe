import java.util.Arrays;
import java.util.Collections;

import kafka.common.OffsetAndMetadata;
import kafka.common.OffsetMetadataAndError;
import kafka.common.TopicAndPartition;
import kafka.javaapi.OffsetCommitRequest;
import kafka.javaapi.OffsetFetchRequest;
import kafka.javaapi.consumer.SimpleConsumer;

/**
 * OffsetCommit and OffsetFetch of version 0, as SimpleConsumer of Kafka 0.8 sends them: OldOffsets HOST PORT GROUP TOPIC.
 * It prints the answer to each of a series of requests, good ones and bad ones, for a topic of one partition.
 */
public final class OldOffsets {
    private static final short VERSION = 0;
    private static SimpleConsumer consumer;
    private static String group;

    public static void main(String[] arguments) {
        consumer = new SimpleConsumer(arguments[0], Integer.parseInt(arguments[1]), 30_000, 65_536, "old-offsets");
        group = arguments[2];
        String topic = arguments[3];
        char[] tooLong = new char[5_000];
        Arrays.fill(tooLong, 'x');
        fetch(topic, 0);
        commit(topic, 0, 42, "");
        fetch(topic, 0);
        commit(topic, 0, 7, "not kept");
        fetch(topic, 0);
        commit(topic, 0, 8, new String(tooLong));
        commit("unknown-topic", 0, 8, "");
        fetch("unknown-topic", 0);
        fetch(topic, 0);
        consumer.close();
    }

    private static void commit(String topic, int partition, long offset, String metadata) {
        TopicAndPartition one = new TopicAndPartition(topic, partition);
        OffsetAndMetadata committed = new OffsetAndMetadata(offset, metadata, -1L);
        OffsetCommitRequest request =
                new OffsetCommitRequest(group, Collections.singletonMap(one, committed), 1, "old-offsets", VERSION);
        System.out.println("commit " + one + " " + offset + ": " + consumer.commitOffsets(request).errorCode(one));
    }

    private static void fetch(String topic, int partition) {
        TopicAndPartition one = new TopicAndPartition(topic, partition);
        OffsetFetchRequest request =
                new OffsetFetchRequest(group, Collections.singletonList(one), VERSION, 1, "old-offsets");
        OffsetMetadataAndError answer = consumer.fetchOffsets(request).offsets().get(one);
        System.out.println("fetch " + one + ": " + answer.offset() + " '" + answer.metadata() + "' " + answer.error());
    }
}
