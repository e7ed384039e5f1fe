import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Consume, transform, produce, exactly once: copies INPUT to OUTPUT with the offsets in the producer's transactions,
 * in a group, until it is killed. Every third transaction is aborted and done again. Prints `copied N` at each commit.
 *
 *     Copier BOOTSTRAP TRANSACTIONAL_ID GROUP INPUT OUTPUT [KEY=VALUE…]       the pairs are consumer configs
 */
public final class Copier {
    private static final int BATCH = 50;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final String bootstrap;
    private final String id;
    private final String output;
    private KafkaProducer<byte[], byte[]> producer;
    private int turn;

    private Copier(String[] arguments) {
        bootstrap = arguments[0];
        id = arguments[1];
        output = arguments[4];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", arguments[2]);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("max.poll.records", String.valueOf(BATCH));
        for (int i = 5; i < arguments.length; i++) {
            settings.put(arguments[i].split("=")[0], arguments[i].split("=")[1]);
        }
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.subscribe(Collections.singletonList(arguments[3]));
    }

    public static void main(String[] arguments) {
        Copier copier = new Copier(arguments);
        copier.start();
        while (true) {
            try {
                copier.copy();
            } catch (KafkaException failure) {
                System.out.println("failed " + failure);
                copier.recover();
            }
        }
    }

    private void start() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("transactional.id", id);
        settings.put("transaction.timeout.ms", "5000");
        producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
        while (true) {
            try {
                producer.initTransactions();
                return;
            } catch (KafkaException failure) {
                System.out.println("failed " + failure);
            }
        }
    }

    private void copy() {
        ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
        if (records.isEmpty()) {
            return;
        }
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(output, record.partition(), record.key(), record.value()));
            offsets.put(new TopicPartition(record.topic(), record.partition()),
                    new OffsetAndMetadata(record.offset() + 1));
        }
        producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
        if (++turn % 3 == 0) {
            producer.flush();
            producer.abortTransaction();
            rewind();
        } else {
            producer.commitTransaction();
            System.out.println("copied " + records.count());
        }
    }

    /** After an error nobody knows how far it came: start over with a new producer, from what was committed. */
    private void recover() {
        producer.close(Duration.ZERO);
        start();
        rewind();
    }

    private void rewind() {
        for (TopicPartition partition : consumer.assignment()) {
            while (true) {
                try {
                    OffsetAndMetadata offset =
                            consumer.committed(Collections.singleton(partition)).get(partition);
                    consumer.seek(partition, offset == null ? 0 : offset.offset());
                    break;
                } catch (CommitFailedException failure) {
                    return;
                } catch (IllegalStateException notAssigned) {
                    return;
                } catch (KafkaException failure) {
                    System.out.println("failed " + failure);
                }
            }
        }
    }
}
