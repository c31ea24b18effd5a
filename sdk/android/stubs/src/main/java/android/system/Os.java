package android.system;

import java.io.FileDescriptor;

/** Compile-time stub: only what the SDK uses. */
public final class Os {
    public static int stubSyncs;

    public static FileDescriptor open(String path, int flags, int mode) throws ErrnoException {
        return new FileDescriptor();
    }

    public static void fsync(FileDescriptor descriptor) throws ErrnoException {
        stubSyncs++;
    }

    public static void close(FileDescriptor descriptor) throws ErrnoException {}
}
