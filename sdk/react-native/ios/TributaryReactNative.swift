import AdServices
import AdSupport
import AppTrackingTransparency
import Foundation
import React
import StoreKit
import WebKit

#if canImport(AdAttributionKit)
  import AdAttributionKit
#endif

/// Data and calls that only native code has. A value that is not available is null; faults reject the promise.
@objc(TributaryReactNative)
final class TributaryReactNative: NSObject {
  /// Kept until it has returned its user agent.
  private var webView: WKWebView?

  @objc static func requiresMainQueueSetup() -> Bool { false }

  /// Returns Apple's token for installs from Apple Ads. Fails in the simulator.
  @objc(adServicesToken:rejecter:)
  func adServicesToken(_ resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock) {
    guard #available(iOS 14.3, *) else { return resolve(nil) }
    do {
      resolve(try AAAttribution.attributionToken())
    } catch {
      reject("ad_services_token", error.localizedDescription, error)
    }
  }

  /// Returns the IDFA if the user has allowed tracking.
  @objc(advertisingId:rejecter:)
  func advertisingId(_ resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock) {
    guard word(ATTrackingManager.trackingAuthorizationStatus) == "authorized" else { return resolve(nil) }
    resolve(ASIdentifierManager.shared().advertisingIdentifier.uuidString)
  }

  /// Returns the user agent of the web view.
  @objc(userAgent:rejecter:)
  func userAgent(_ resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock) {
    DispatchQueue.main.async {
      let webView = WKWebView(frame: .zero)
      self.webView = webView
      webView.evaluateJavaScript("navigator.userAgent") { found, error in
        self.webView = nil
        if let error { return reject("user_agent", error.localizedDescription, error) }
        resolve(found as? String)
      }
    }
  }

  @objc(trackingStatus:rejecter:)
  func trackingStatus(_ resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock) {
    resolve(word(ATTrackingManager.trackingAuthorizationStatus))
  }

  /// Shows the prompt if the user has not seen it. Requires NSUserTrackingUsageDescription; the system ends the app
  /// without it.
  @objc(requestTracking:rejecter:)
  func requestTracking(_ resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock) {
    DispatchQueue.main.async {
      ATTrackingManager.requestTrackingAuthorization { status in resolve(self.word(status)) }
    }
  }

  /// Reports a conversion value to SKAdNetwork and, from iOS 17.4, to AdAttributionKit. Each keeps its own value.
  /// Rejects only if all of them failed.
  @objc(updateConversionValue:coarse:lock:resolver:rejecter:)
  func updateConversionValue(
    _ fine: Int, coarse: String, lock: Bool,
    resolver resolve: @escaping RCTPromiseResolveBlock, rejecter reject: @escaping RCTPromiseRejectBlock
  ) {
    Task {
      // Each is tried although the other failed.
      var failures: [Error] = []
      var attempts = 0
      #if canImport(AdAttributionKit)
        if #available(iOS 17.4, *) {
          attempts += 1
          let value: AdAttributionKit.CoarseConversionValue = coarse == "high" ? .high : coarse == "medium" ? .medium : .low
          do {
            try await Postback.updateConversionValue(fine, coarseConversionValue: value, lockPostback: lock)
          } catch {
            failures.append(error)
          }
        }
      #endif
      if #available(iOS 15.4, *) {
        attempts += 1
        do {
          try await updateSKAdNetwork(fine, coarse: coarse, lock: lock)
        } catch {
          failures.append(error)
        }
      }
      // Fails only if none of them took the value.
      guard let last = failures.last, failures.count == attempts else { return resolve(nil) }
      reject("conversion_value", failures.map(\.localizedDescription).joined(separator: "; "), last)
    }
  }

  @available(iOS 15.4, *)
  private func updateSKAdNetwork(_ fine: Int, coarse: String, lock: Bool) async throws {
    if #available(iOS 16.1, *) {
      let value: SKAdNetwork.CoarseConversionValue = coarse == "high" ? .high : coarse == "medium" ? .medium : .low
      try await SKAdNetwork.updatePostbackConversionValue(fine, coarseValue: value, lockWindow: lock)
    } else {
      try await SKAdNetwork.updatePostbackConversionValue(fine)
    }
  }

  private func word(_ status: ATTrackingManager.AuthorizationStatus) -> String {
    switch status {
    case .authorized: return "authorized"
    case .denied: return "denied"
    case .restricted: return "restricted"
    default: return "notDetermined"
    }
  }
}
