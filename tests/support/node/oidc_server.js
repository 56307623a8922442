// An OIDC server (oidc-provider): its settings are the first argument, in JSON. It prints a line once it listens.
//   port; audience: of tokens for which no other is asked
//   redirectUri: of the registry's client `registry-web`
//   keys: its JWKs; it signs with the first
//   lifetimes: seconds of a service's token, by the service's name; each is a client with the secret `secret`
import Provider from "oidc-provider";

const settings = JSON.parse(process.argv[2]);
const issuer = `http://127.0.0.1:${settings.port}`;

const services = Object.keys(settings.lifetimes).map((name) => ({
  client_id: name,
  client_secret: "secret",
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
  token_endpoint_auth_method: "client_secret_basic",
}));

const web = {
  client_id: "registry-web",
  redirect_uris: [settings.redirectUri],
  grant_types: ["authorization_code"],
  response_types: ["code"],
  token_endpoint_auth_method: "none",
};

const provider = new Provider(issuer, {
  clients: [web, ...services],
  cookies: { keys: ["of tests"] },
  jwks: { keys: settings.keys },
  pkce: { required: () => true },
  scopes: ["openid", "registry.write"],
  claims: { openid: ["sub", "groups"] },
  // Everyone may sign in; who is called shop-alice is in the group shop.
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: [id.split("-")[0]] }),
  }),
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => settings.audience,
      getResourceServerInfo: (_context, resource, client) => ({
        scope: "registry.write",
        audience: resource,
        accessTokenFormat: "jwt",
        accessTokenTTL: settings.lifetimes[client.clientId],
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});

provider.listen(settings.port, "127.0.0.1", () => process.stdout.write(`${issuer}\n`));
