// Package console is the web console: pages that show a fabric (its servers, workers,
// tools, calls and batches) and act on it, over the REST API of a front door.
//
// It owns the content of those pages. Every figure and every action goes through the REST API with
// the credential of the user, so that users can do nothing here that the API does not allow them.
// Values that the front door does not report are shown as unknown. GET and HEAD change nothing.
// The pages need no JavaScript.
//
// It does not sign users in and does not frame its pages: the embedding server does both, and
// passes a [Visit] with each request. It stores no credentials. Of the front door it links only the
// client.
//
// It is one package because its pages show the same servers, tools and calls, lead to each
// other, and share one client and one frame.
package console
