import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import org.apache.kafka.common.security.kerberos.KerberosName;
import org.apache.kafka.common.security.kerberos.KerberosShortNamer;

/**
 * Asks Apache Kafka's KerberosShortNamer. A line of standard input is tab separated: `rules REALM RULE …` begins anew,
 * `name PRINCIPAL` is answered by a line: `=` and the name, or `!` where there is none. `rules` is answered by `ok`, or
 * by `!` where there is a rule that is none.
 */
public class KerberosNames {
    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        StringBuilder answers = new StringBuilder();
        KerberosShortNamer namer = null;
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            try {
                if (words[0].equals("rules")) {
                    namer = null;
                    namer = KerberosShortNamer.fromUnparsedRules(words[1], Arrays.asList(words).subList(2, words.length));
                    answers.append("ok\n");
                } else {
                    answers.append("=" + namer.shortName(KerberosName.parse(words[1])) + "\n");
                }
            } catch (Exception error) {
                answers.append("!\n");
            }
        }
        System.out.write(answers.toString().getBytes("UTF-8"));
        System.out.flush();
    }
}
