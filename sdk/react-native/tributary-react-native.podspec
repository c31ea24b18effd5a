require "json"

package = JSON.parse(File.read(File.join(__dir__, "package.json")))

Pod::Spec.new do |s|
  s.name = package["name"]
  s.version = package["version"]
  s.summary = package["description"]
  s.license = package["license"]
  s.homepage = package["repository"]["url"].delete_prefix("git+")
  s.author = "Tributary"
  s.source = { git: s.homepage, tag: "v#{s.version}" }
  s.platforms = { ios: "14.0" }
  s.swift_version = "5.9"
  s.source_files = "ios/**/*.{m,swift}"
  s.frameworks = "AdSupport", "AppTrackingTransparency", "StoreKit", "WebKit"
  # Not on every iOS version that the app may support.
  s.weak_frameworks = "AdAttributionKit", "AdServices"
  s.dependency "React-Core"
end
