package dev.tributary.sample

import android.app.Activity
import android.content.Intent
import android.os.Bundle
import android.widget.Button
import android.widget.LinearLayout
import android.widget.TextView
import dev.tributary.sdk.Consent
import dev.tributary.sdk.Tributary

/** A button for each important call. */
class MainActivity : Activity() {
    override fun onCreate(savedInstanceState: Bundle?) {
        super.onCreate(savedInstanceState)
        val column = LinearLayout(this)
        column.setOrientation(LinearLayout.VERTICAL)
        val status = TextView(this)
        column.addView(status)

        fun button(label: String, action: () -> Unit) {
            val button = Button(this)
            button.setText(label)
            button.setOnClickListener { action() }
            column.addView(button)
        }
        button("View") { Tributary.trackEvent("view_content", mapOf("page" to "main")) }
        button("Buy") {
            Tributary.trackEvent("purchase", mapOf("revenue" to "9.99", "currency" to "EUR", "sku" to "coins_100"))
        }
        button("Sign in") {
            Tributary.setUserId("user-42")
            Tributary.setAdvancedMatching(email = "joe@example.com")
        }
        button("Agree") { Tributary.setConsent(Consent(adUserData = true, adPersonalization = true)) }
        button("Refuse") { Tributary.setConsent(Consent(adUserData = false, adPersonalization = false)) }
        button("Sign out") { Tributary.reset() }
        button("Erase my data") { Tributary.eraseMe() }
        Tributary.getAttribution { status.setText(it?.network ?: "not known yet") }
        setContentView(column)
    }

    /** A link that opens the running activity. The SDK sees the links that create it. */
    override fun onNewIntent(intent: Intent) {
        super.onNewIntent(intent)
        Tributary.handleIntent(intent)
    }
}
