// Package admin implements the operations for operators of a front door: probes, health, the build,
// metrics, and the effective configuration of each process of the fabric.
//
// Probes and health need no credential, so they contain only public facts: they report that a file
// was refused, but not why.
//
// It changes nothing.
package admin
