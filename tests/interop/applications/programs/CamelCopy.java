import org.apache.camel.Exchange;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.kafka.KafkaConstants;
import org.apache.camel.component.kafka.consumer.KafkaManualCommit;
import org.apache.camel.main.Main;

/** Apache Camel: a route that copies a topic, then commits. Arguments: bootstrap, folder, input, output. */
public final class CamelCopy {
    public static void main(String[] arguments) throws Exception {
        String source = "kafka:" + arguments[2] + "?brokers=" + arguments[0] + "&groupId=camel-copy"
            + "&autoOffsetReset=earliest&autoCommitEnable=false&allowManualCommit=true&breakOnFirstError=true"
            + "&maxPollRecords=50&consumersCount=2&sessionTimeoutMs=6000&heartbeatIntervalMs=1000";
        String target = "kafka:" + arguments[3] + "?brokers=" + arguments[0];
        Main main = new Main();
        main.configure().addRoutesBuilder(new RouteBuilder() {
            @Override
            public void configure() {
                from(source).to(target).process(CamelCopy::commit);
            }
        });
        main.run();
    }

    private static void commit(Exchange exchange) {
        exchange.getIn().getHeader(KafkaConstants.MANUAL_COMMIT, KafkaManualCommit.class).commit();
    }
}
