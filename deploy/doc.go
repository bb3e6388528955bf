// Package deploy holds what runs Callyard for others: images, compose files, a
// Helm chart, the accounts of NATS, example configurations, dashboards and alerts.
//
// Its tests promise that none of that is prose: the permissions are those of pkg/bus and
// a whole fabric runs under them, every example is loaded, and every metric that a
// dashboard or an alert names is there. It has no code of its own.
package deploy
