// Package ended knows the grants of the approver's authorization server that have ended, so
// that a front door refuses access tokens of them although they have not expired.
//
// It promises that every front door follows an end within a second while NATS can be reached.
// It refuses to say anything of tokens that name no grant: other issuers have none.
package ended
