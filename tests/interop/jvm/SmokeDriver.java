import java.time.Duration;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.streams.tests.SmokeTestDriver;

/**
 * The driver of StreamsSmokeTest, for as long as its arguments say: `StreamsSmokeTest FILE run` writes for 90 seconds.
 *
 *     SmokeDriver BOOTSTRAP KEYS RECORDS_PER_KEY SECONDS
 *
 * Writes the records, prints `written`, and ends with status 0 if the application's output is exact.
 */
public final class SmokeDriver {
    public static void main(String[] arguments) {
        int keys = Integer.parseInt(arguments[1]);
        int perKey = Integer.parseInt(arguments[2]);
        Duration duration = Duration.ofSeconds(Long.parseLong(arguments[3]));
        Map<String, Set<Integer>> written = SmokeTestDriver.generate(arguments[0], keys, perKey, duration);
        System.out.println("written");
        boolean isExact = SmokeTestDriver.verify(arguments[0], written, perKey, true).passed();
        System.exit(isExact ? 0 : 1);
    }
}
