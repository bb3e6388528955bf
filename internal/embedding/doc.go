// Package embedding converts the definitions of tools and the queries of searches to vectors, using
// an endpoint with the API of OpenAI's embeddings (POST /v1/embeddings).
//
// It holds the vectors of the tools of one front door in memory, by the digest of their
// definitions. A definition is embedded once, even if several servers have it, and again only after
// a restart. Texts are sent in batches in the background, and failures are retried later.
//
// A search never fails because of the endpoint: [Store.Query] returns an error with the reason, and
// the search uses words only.
//
// Names and descriptions of tools and the texts of queries are sent to the endpoint. Redirects are
// not followed, so that neither these nor the key reach another host.
package embedding
