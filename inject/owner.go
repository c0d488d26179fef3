package inject

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownerOf tells which workload a pod belongs to, as far as the pod says: its controller, or that one's own owner where
// names give it away. A pod whose name was not generated stands for itself.
func ownerOf(pod *corev1.Pod) Workload {
	w := Workload{Type: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		Name: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}}
	owner := metav1.GetControllerOfNoCopy(pod)
	if pod.GenerateName == "" || owner == nil {
		return w
	}
	w.Type = metav1.TypeMeta{Kind: owner.Kind, APIVersion: owner.APIVersion}
	w.Name.Name = cmp.Or(owner.Name, pod.Name)
	switch owner.Kind {
	case "ReplicaSet":
		if name, ok := trimHash(owner.Name, pod.Labels["pod-template-hash"]); ok {
			w.Name.Name, w.Type.Kind = name, "Deployment"
		} else if name, ok := trimHash(owner.Name, pod.Labels["rollouts-pod-template-hash"]); ok {
			w.Name.Name, w.Type = name, metav1.TypeMeta{Kind: "Rollout", APIVersion: "v1alpha1"}
		}
	case "ReplicationController":
		if config := pod.Labels["deploymentconfig"]; config != "" {
			w.Name.Name, w.Type = config, metav1.TypeMeta{Kind: "DeploymentConfig", APIVersion: "v1"}
		}
	case "Job":
		if name, ok := trimTime(owner.Name); ok {
			w.Name.Name, w.Type = name, metav1.TypeMeta{Kind: "CronJob", APIVersion: "batch/v1"}
		}
	}
	return w
}

// trimHash returns a ReplicaSet's name without the hash of its template.
func trimHash(name, hash string) (string, bool) {
	if hash == "" || !strings.HasSuffix(name, hash) {
		return "", false
	}
	return strings.TrimSuffix(name, "-"+hash), true
}

// trimTime returns a Job's name without the time that a CronJob puts there: a number of 8 to 10 digits.
func trimTime(name string) (string, bool) {
	i := strings.LastIndexByte(name, '-')
	if i < 1 || len(name)-i-1 < 8 || len(name)-i-1 > 10 || strings.Trim(name[i+1:], "0123456789") != "" {
		return "", false
	}
	return name[:i], true
}
