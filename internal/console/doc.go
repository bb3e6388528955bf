// Package console is the web console: pages that show a fabric (its servers, workers,
// tools, calls and batches) and act on it, over the REST API of a front door.
//
// It owns what those pages show. It promises that every figure and every act is one of the
// REST API, asked for with the credential of the person who looks, so that nobody can do
// more here than with the API; that what the front door does not say is shown as unknown;
// and that looking (GET, HEAD) changes nothing. The pages need no JavaScript.
//
// It refuses to sign people in and to frame its pages: whoever serves it does that, and hands
// in a [Visit] with each request. It keeps no credential, and links nothing of a front
// door but its client.
//
// It is one package because its pages show the same servers, tools and calls, lead to each
// other, and share one client and one frame.
package console
