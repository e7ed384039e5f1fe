import java.time.Duration;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.streams.tests.SmokeTestDriver;
import org.apache.kafka.streams.tests.SmokeTestUtil.VerificationResult;

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
        VerificationResult result = SmokeTestDriver.verify(arguments[0], written, perKey, true);
        // It reads the end offset of a partition before its last stable offset: a transaction may end in between.
        while (!result.passed() && result.result().contains("is larger than topic endOffset")) {
            result = SmokeTestDriver.verify(arguments[0], written, perKey, true);
        }
        System.exit(result.passed() ? 0 : 1);
    }
}
