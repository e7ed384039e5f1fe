import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import reactor.core.publisher.Mono;
import reactor.kafka.receiver.KafkaReceiver;
import reactor.kafka.receiver.ReceiverOptions;
import reactor.kafka.sender.KafkaSender;
import reactor.kafka.sender.SenderOptions;
import reactor.kafka.sender.SenderRecord;
import reactor.kafka.sender.TransactionManager;

/** Reactor Kafka: a flow that copies a topic in transactions. Arguments: bootstrap, folder, input, output. */
public final class ReactorCopy {
    public static void main(String[] arguments) {
        KafkaSender<String, String> sender = KafkaSender.create(SenderOptions.<String, String>create(Map.of(
            "bootstrap.servers", arguments[0], "transactional.id", "reactor-copy", "transaction.timeout.ms", 10000,
            "key.serializer", StringSerializer.class, "value.serializer", StringSerializer.class)));
        ReceiverOptions<String, String> receiving = ReceiverOptions.<String, String>create(Map.of(
            "bootstrap.servers", arguments[0], "group.id", "reactor-copy", "auto.offset.reset", "earliest",
            "isolation.level", "read_committed", "session.timeout.ms", 6000, "max.poll.records", 100,
            "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class));
        TransactionManager transactions = sender.transactionManager();
        try {
            KafkaReceiver.create(receiving.subscription(Set.of(arguments[2]))).receiveExactlyOnce(transactions)
                .concatMap(batch -> sender.send(batch.map(record -> SenderRecord.create(
                    new ProducerRecord<>(arguments[3], record.key(), record.value()), record.offset())))
                    .concatWith(transactions.commit()))
                .onErrorResume(error -> transactions.abort().then(Mono.error(error)))
                .blockLast();
        } finally {
            System.exit(1);  // a stream that has failed starts again as a new process
        }
    }
}
