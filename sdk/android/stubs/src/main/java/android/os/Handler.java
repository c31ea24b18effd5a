package android.os;

/** Compile-time stub: runs tasks at once. */
public class Handler {
    public Handler(Looper looper) {}

    public final boolean post(Runnable task) {
        task.run();
        return true;
    }
}
