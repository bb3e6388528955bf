// Package embedding turns the definitions of tools and the queries of searches into vectors, by
// an endpoint with the API of OpenAI's embeddings (POST /v1/embeddings).
//
// It owns the vectors of the tools of one front door, in memory, by the digest of their
// definitions: a definition is embedded once, whichever server has it, and again only after a
// restart. Texts go out in batches in the background, and what fails is tried again later.
//
// It promises that a search never fails because of the endpoint: [Store.Query] returns an error
// that says why, and the search goes by words alone.
//
// It sends names and descriptions of tools and the texts of queries to the endpoint, and
// refuses to follow its redirects, so that neither these nor the key go anywhere else.
package embedding
