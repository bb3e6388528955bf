// Package deploy tests what the folder deploy ships: images, compose files, a Helm chart,
// the accounts of NATS, example configurations, dashboards and alerts.
//
// The tests promise that none of that is prose: the permissions are those of pkg/bus and
// a whole fabric runs under them, every example is loaded, and every metric that a
// dashboard or an alert names is there. They run in the folder deploy.
package deploy
