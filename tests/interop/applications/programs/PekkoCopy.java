import com.typesafe.config.ConfigFactory;
import java.time.Duration;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.kafka.ConsumerSettings;
import org.apache.pekko.kafka.ProducerMessage;
import org.apache.pekko.kafka.ProducerSettings;
import org.apache.pekko.kafka.Subscriptions;
import org.apache.pekko.kafka.javadsl.Transactional;

/** Pekko Connectors: a stream that copies a topic in transactions. Arguments: bootstrap, folder, input, output. */
public final class PekkoCopy {
    public static void main(String[] arguments) {
        ActorSystem system = ActorSystem.create("copy", ConfigFactory.parseString("pekko.loglevel = WARNING")
            .withFallback(ConfigFactory.load()));
        ConsumerSettings<String, String> consuming =
            ConsumerSettings.create(system, new StringDeserializer(), new StringDeserializer())
                .withBootstrapServers(arguments[0]).withGroupId("pekko-copy")
                .withProperty("auto.offset.reset", "earliest")
                .withProperty("session.timeout.ms", "6000").withProperty("heartbeat.interval.ms", "1000");
        ProducerSettings<String, String> producing =
            ProducerSettings.create(system, new StringSerializer(), new StringSerializer())
                .withBootstrapServers(arguments[0]).withEosCommitInterval(Duration.ofMillis(200))
                .withProperty("transaction.timeout.ms", "10000");
        Transactional.source(consuming, Subscriptions.topics(arguments[2]))
            .map(message -> ProducerMessage.single(
                new ProducerRecord<>(arguments[3], message.record().key(), message.record().value()),
                message.partitionOffset()))
            .runWith(Transactional.sink(producing, "pekko-copy"), system)
            .whenComplete((done, error) -> {
                error.printStackTrace();
                System.exit(1);
            });
    }
}
