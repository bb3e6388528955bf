// Package ended tracks the ended grants of the approver's authorization server, so that a front
// door refuses their access tokens although they have not expired.
//
// Every front door applies the end of a grant within a second while NATS can be reached. Tokens of
// other issuers name no grant, so the package does not apply to them.
package ended
