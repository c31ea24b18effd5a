package android.os;

/** Compile-time stub. */
public class RemoteException extends Exception {}
