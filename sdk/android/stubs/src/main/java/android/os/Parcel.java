package android.os;

import java.util.ArrayDeque;
import java.util.Deque;

/** Compile-time stub: only what the SDK uses. It holds the values in order. */
public final class Parcel {
    private final Deque<Object> values = new ArrayDeque<>();

    public static Parcel obtain() {
        return new Parcel();
    }

    public void writeInterfaceToken(String descriptor) {
        values.add(descriptor);
    }

    public void writeInt(int value) {
        values.add(value);
    }

    public void writeString(String value) {
        values.add(value);
    }

    public void writeNoException() {
        values.add(0);
    }

    public void readException() {
        if (readInt() != 0) throw new SecurityException("stub");
    }

    public int readInt() {
        return values.isEmpty() ? 0 : (Integer) values.remove();
    }

    public String readString() {
        return (String) values.remove();
    }

    public void recycle() {}

    public void stubWrite(Object value) {
        values.add(value);
    }

    public Object stubRead() {
        return values.remove();
    }
}
