import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;
import org.springframework.kafka.listener.MessageListener;
import org.springframework.kafka.transaction.KafkaTransactionManager;

/** Spring Kafka: a listener that copies a topic in transactions. Arguments: bootstrap, folder, input, output. */
public final class SpringCopy {
    public static void main(String[] arguments) {
        Map<String, Object> producing = new HashMap<>();
        producing.put("bootstrap.servers", arguments[0]);
        producing.put("transaction.timeout.ms", 10000);
        DefaultKafkaProducerFactory<String, String> producers =
            new DefaultKafkaProducerFactory<>(producing, new StringSerializer(), new StringSerializer());
        producers.setTransactionIdPrefix("spring-copy-");
        KafkaTemplate<String, String> template = new KafkaTemplate<>(producers);

        Map<String, Object> consuming = new HashMap<>();
        consuming.put("bootstrap.servers", arguments[0]);
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("isolation.level", "read_committed");
        consuming.put("session.timeout.ms", 6000);
        consuming.put("max.poll.records", 50);
        ContainerProperties properties = new ContainerProperties(arguments[2]);
        properties.setGroupId("spring-copy");
        properties.setKafkaAwareTransactionManager(new KafkaTransactionManager<>(producers));
        properties.setMessageListener((MessageListener<String, String>) (ConsumerRecord<String, String> record) ->
            template.send(arguments[3], record.key(), record.value()));
        ConcurrentMessageListenerContainer<String, String> container = new ConcurrentMessageListenerContainer<>(
            new DefaultKafkaConsumerFactory<>(consuming, new StringDeserializer(), new StringDeserializer()), properties);
        container.setConcurrency(2);
        container.start();
    }
}
