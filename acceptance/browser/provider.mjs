// A small OpenID provider that signs in one person at once, with real keys. It checks what it is asked like a real one.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer } from "node:http";

export const CLIENT_ID = "tributary";
export const CLIENT_SECRET = "a secret of the client";

const KEY_ID = "1";
const LIFETIME_SECONDS = 300;

const encode = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const decodeForm = (text) => decodeURIComponent(text.replaceAll("+", " "));

/** A provider on a free port of this host. */
export class Provider {
  static async start(person) {
    const provider = new Provider();
    provider.person = person;
    provider.codes = new Map();
    provider.keys = generateKeyPairSync("rsa", { modulusLength: 2048 });
    provider.server = createServer((request, response) => {
      provider.answer(request).catch((error) => [400, String(error)]).then(([status, body, location]) => {
        const isJson = typeof body !== "string";
        response.writeHead(status, { "content-type": isJson ? "application/json" : "text/plain", ...(location ? { location } : {}) });
        response.end(isJson ? JSON.stringify(body) : body);
      });
    });
    await new Promise((listening) => provider.server.listen(0, "127.0.0.1", listening));
    provider.issuer = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async answer(request) {
    const url = new URL(request.url, this.issuer);
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return [200, { issuer: this.issuer, authorization_endpoint: `${this.issuer}/in`, token_endpoint: `${this.issuer}/token`, jwks_uri: `${this.issuer}/keys` }];
      case "/keys":
        return [200, { keys: [{ ...this.keys.publicKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: KEY_ID }] }];
      case "/in":
        return [302, "", this.signIn(url.searchParams)];
      case "/token":
        return [200, this.redeem(request.headers.authorization, new URLSearchParams(await bodyOf(request)))];
      default:
        return [404, "no such page"];
    }
  }

  // Returns the URL that the browser goes back to.
  signIn(query) {
    assert.equal(query.get("response_type"), "code");
    assert.equal(query.get("client_id"), CLIENT_ID);
    assert.equal(query.get("code_challenge_method"), "S256");
    const code = randomUUID();
    this.codes.set(code, { nonce: query.get("nonce"), challenge: query.get("code_challenge"), target: query.get("redirect_uri") });
    const target = new URL(query.get("redirect_uri"));
    target.search = new URLSearchParams({ code, state: query.get("state"), iss: this.issuer });
    return target.href;
  }

  redeem(authorization, form) {
    const [id, secret] = Buffer.from(authorization.replace(/^Basic /, ""), "base64").toString().split(":").map(decodeForm);
    assert.deepEqual([id, secret], [CLIENT_ID, CLIENT_SECRET]);
    const code = this.codes.get(form.get("code"));
    this.codes.delete(form.get("code"));
    assert.equal(form.get("redirect_uri"), code.target);
    assert.equal(createHash("sha256").update(form.get("code_verifier")).digest("base64url"), code.challenge);
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.issuer, aud: CLIENT_ID, iat: now, exp: now + LIFETIME_SECONDS, nonce: code.nonce, email_verified: true, ...this.person };
    const text = `${encode({ alg: "RS256", kid: KEY_ID })}.${encode(claims)}`;
    const signature = sign("sha256", Buffer.from(text), this.keys.privateKey).toString("base64url");
    return { access_token: randomUUID(), token_type: "Bearer", id_token: `${text}.${signature}` };
  }
}

async function bodyOf(request) {
  let body = "";
  for await (const part of request) body += part;
  return body;
}
