package android.os;

/** Compile-time stub: only what the SDK uses. */
public interface IBinder {
    int FIRST_CALL_TRANSACTION = 1;

    boolean transact(int code, Parcel data, Parcel reply, int flags) throws RemoteException;
}
