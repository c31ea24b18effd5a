package android.os;

import java.util.HashMap;
import java.util.Map;

/** Compile-time stub: only what the SDK uses. */
public final class Bundle implements Parcelable {
    public static final Parcelable.Creator<Bundle> CREATOR = parcel -> (Bundle) parcel.stubRead();

    private final Map<String, Object> values = new HashMap<>();

    public void putString(String key, String value) {
        values.put(key, value);
    }

    public void putLong(String key, long value) {
        values.put(key, value);
    }

    public String getString(String key) {
        return (String) values.get(key);
    }

    public long getLong(String key) {
        Object value = values.get(key);
        return value == null ? 0 : (Long) value;
    }

    public void writeToParcel(Parcel parcel, int flags) {
        parcel.stubWrite(this);
    }
}
