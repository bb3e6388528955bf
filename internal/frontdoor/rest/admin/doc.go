// Package admin has the operations for those who run a front door: probes, health, the build,
// metrics, and the configuration that each process of the fabric goes by.
//
// It promises that probes and health can be read by everybody, and so tell nothing that is
// not for everybody: they say that a file was refused, and not why.
//
// It refuses to change anything.
package admin
