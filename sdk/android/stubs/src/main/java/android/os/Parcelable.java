package android.os;

/** Compile-time stub: only what the SDK uses. */
public interface Parcelable {
    interface Creator<T> {
        T createFromParcel(Parcel source);
    }
}
