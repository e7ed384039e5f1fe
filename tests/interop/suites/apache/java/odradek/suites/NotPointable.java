package odradek.suites;

/** Ends a test that needs more of a cluster than processes can give it, such as the objects of a broker in the JVM. */
public final class NotPointable extends UnsupportedOperationException {
    public NotPointable(String needed) {
        super("needs " + needed);
    }

    public static NotPointable objects(String called) {
        return new NotPointable("the objects of a broker in this JVM: " + called);
    }
}
