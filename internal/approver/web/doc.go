// Package web is the approver over HTTP: pages for people and a JSON API for
// programs, both in front of the same desk.
//
// It owns how a held call is shown and how an answer comes in. It promises that
// what is shown are the stored bytes, all of them, with every character visible
// that could make them look like others; that looking (GET, HEAD, OPTIONS)
// changes nothing; that an answer counts for the arguments that were shown; and
// that a decision on a page needs a session, a token of that form and a request
// from the page itself. The pages need no JavaScript.
//
// It shows an approval only to those whom it concerns: the members of its
// groups, the one who asked, and the observers of the configuration. For
// everybody else it is not there.
//
// It refuses to decide who may decide, and when: that is [approval.Desk]. It
// never logs arguments, keys or cookies.
//
// It is one package because the pages and the API show the same approvals to the same
// people: what one hides, the other must not show.
package web
