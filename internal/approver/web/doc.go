// Package web is the approver over HTTP: pages for people and a JSON API for
// programs, both in front of the same desk.
//
// It owns the display of held calls and the receipt of decisions. Pages show all of the stored
// bytes, with every deceptive character made visible. GET, HEAD and OPTIONS change nothing. A
// decision applies to the arguments that were shown. A decision on a page requires a session, a
// token of that form and a request from the page itself. The pages need no JavaScript.
//
// An approval is visible only to the people whom it concerns: the members of its groups, the
// requester, and the configured observers. For everyone else it does not exist.
//
// It does not determine who may decide, and when: [approval.Desk] does. It never logs arguments,
// keys or cookies.
//
// It is one package because the pages and the API show the same approvals to the same
// people: what one hides, the other must not show.
package web
