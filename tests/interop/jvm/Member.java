import java.lang.reflect.Method;
import java.util.Collection;
import java.util.Collections;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;

/** A consumer in a group: Member BOOTSTRAP TOPIC GROUP KEY=VALUE…, which are the client's own. Says what member.py says. */
public final class Member {
    private static volatile boolean stopped = false;

    public static void main(String[] words) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[2]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        settings.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        for (int i = 3; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        Thread watch = new Thread(Member::waitForEnd);
        watch.setDaemon(true);
        watch.start();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        subscribe(consumer, words[1]);
        while (!stopped) {
            ConsumerRecords<byte[], byte[]> records = poll(consumer);
            for (ConsumerRecord<byte[], byte[]> record : records) {
                say("record " + record.partition() + " " + record.offset());
            }
            if (!records.isEmpty()) {
                commit(consumer);
            }
        }
        consumer.close();
    }

    /** A topic that begins with ^ is a pattern, which the broker matches (SubscriptionPattern, Java clients 4.0 and newer). */
    private static void subscribe(KafkaConsumer<byte[], byte[]> consumer, String topic) throws Exception {
        Telling telling = new Telling(consumer);
        if (!topic.startsWith("^")) {
            consumer.subscribe(Collections.singletonList(topic), telling);
            return;
        }
        Class<?> type = Class.forName("org.apache.kafka.clients.consumer.SubscriptionPattern");
        Object pattern = type.getConstructor(String.class).newInstance(topic);
        KafkaConsumer.class.getMethod("subscribe", type, ConsumerRebalanceListener.class).invoke(consumer, pattern, telling);
    }

    private static void commit(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            consumer.commitSync();
            say("committed");
        } catch (Exception error) {
            say("error " + error);
        }
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() >= 0) {
            }
        } catch (java.io.IOException error) {
            say("error " + error);
        }
        stopped = true;
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> poll(KafkaConsumer<byte[], byte[]> consumer) throws Exception {
        try {
            Method poll = KafkaConsumer.class.getMethod("poll", java.time.Duration.class);
            return (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, java.time.Duration.ofMillis(100));
        } catch (NoSuchMethodException before20) {
            Method poll = KafkaConsumer.class.getMethod("poll", long.class);
            return (ConsumerRecords<byte[], byte[]>) poll.invoke(consumer, 100L);
        }
    }

    private static final class Telling implements ConsumerRebalanceListener {
        private final KafkaConsumer<?, ?> consumer;

        Telling(KafkaConsumer<?, ?> consumer) {
            this.consumer = consumer;
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            TreeSet<Integer> numbers = new TreeSet<>();
            for (TopicPartition partition : consumer.assignment()) {
                numbers.add(partition.partition());
            }
            StringBuilder line = new StringBuilder("assigned ");
            for (Integer number : numbers) {
                line.append(line.length() > 9 ? "," : "").append(number);
            }
            say(line.toString());
        }
    }
}
