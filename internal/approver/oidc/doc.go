// Package oidc signs people in at an identity provider: OpenID Connect, code flow with PKCE.
//
// It verifies the identity of a person and maps it to a principal. It accepts only an ID token that
// the provider signed with an asymmetric key, for this client and for the flow that the same
// browser began, and that has not expired. If a fresh sign-in is required, the ID token must prove
// an authentication after the start of the flow. The name of a person begins with "oidc:", so that
// it never equals the name of an API key. The owner is the bare value of the claim, so that it can
// be compared with the owner of a key.
//
// It stores nothing of a flow: the caller seals it and the browser keeps it. It neither stores nor
// forwards access tokens. It never logs tokens, codes or claims.
package oidc
