import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;

import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** Has a Java client show the token in a file: the login module's options are file and user. */
public final class TokenFromFile implements AuthenticateCallbackHandler {
    private static final long HOUR_MS = 3_600_000;
    private Map<String, ?> options = Collections.emptyMap();

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
        options = entries.get(0).getOptions();
    }

    @Override
    public void handle(Callback[] callbacks) throws IOException, UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerTokenCallback) {
                byte[] bytes = Files.readAllBytes(Paths.get((String) options.get("file")));
                String user = (String) options.get("user");
                ((OAuthBearerTokenCallback) callback).token(new Token(new String(bytes, StandardCharsets.UTF_8), user));
            } else if (!(callback instanceof SaslExtensionsCallback)) {
                throw new UnsupportedCallbackException(callback);
            }
        }
    }

    @Override
    public void close() {
    }

    private static final class Token implements OAuthBearerToken {
        private final String value;
        private final String user;
        private final long madeMs = System.currentTimeMillis();

        Token(String value, String user) {
            this.value = value;
            this.user = user;
        }

        @Override
        public String value() {
            return value;
        }

        @Override
        public Set<String> scope() {
            return Collections.emptySet();
        }

        @Override
        public long lifetimeMs() {
            return madeMs + HOUR_MS;
        }

        @Override
        public String principalName() {
            return user;
        }

        @Override
        public Long startTimeMs() {
            return madeMs;
        }
    }
}
