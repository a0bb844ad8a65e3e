#!/usr/bin/env bash
# Makes an environment on this machine in which the three stories are real: four kind clusters with Open Cluster
# Management, Kueue and placement-ac on them. A second run makes only what is missing. Set for the samples:
# cluster set `spoke` bound in kueue-system, queues on the workers, GPUs that are only said to be there.
set -euo pipefail

readonly HUB=hub WORKERS=(cluster1 cluster2 cluster3) GPU_WORKERS=(cluster2 cluster3) GPUS=3
readonly ADDONS=(managed-serviceaccount cluster-proxy resource-usage-collect)
readonly CHARTS=https://open-cluster-management.io/helm-charts
readonly KUEUE_CHART=oci://registry.k8s.io/kueue/charts/kueue
readonly TOOLS=(docker:20.10.0 kind:0.24.0 kubectl:1.31.0 helm:3.12.0 clusteradm:0.11.0) # kubectl: --for=create
readonly IMAGE=ghcr.io/placement-ac/placement-ac:v0.1.0 # the one in config/, so that it is found on the node
readonly OLDEST_KUEUE=0.15.0 OLDEST_KUEUE_WITH_PROFILES=0.19.0                            # v1beta2, accessProviders
readonly PATIENCE=600s

KUEUE_VERSION=v0.19.2
MODE=provisioning
DRY_RUN=false
CLEAN=false
TOKEN=

usage() {
    cat <<END
Usage: setup-env.sh [--kueue-version VERSION] [--cluster-profile] [--dry-run]
       setup-env.sh --clean [--dry-run]

  --kueue-version VERSION  the release of Kueue on all clusters (default: $KUEUE_VERSION)
  --cluster-profile        Kueue goes by ClusterProfiles: turns on the feature gates of OCM and Kueue for it;
                           without it, kubeconfigs are made. To change from one to the other, --clean first
  --dry-run                print each command (+ one that changes something, ? one that asks), and run none
  --clean                  delete the four clusters, and stop
END
}

main() {
    parse "$@"
    cd "$(dirname "${BASH_SOURCE[0]}")"
    exec 3>&1 # where commands are told, also from within $(…)
    check_version
    if [[ $CLEAN == true ]]; then
        check_tools kind
        delete_clusters
        return
    fi
    check_tools docker kind kubectl helm clusteradm
    make_clusters
    make_hub
    join_workers
    install_kueue
    bind_cluster_set
    install_addons
    install_controller
    pretend_gpus
    wait_for_all
    tell
}

parse() {
    while (($#)); do
        case $1 in
        --kueue-version)
            (($# > 1)) || refuse "--kueue-version needs a version, such as $KUEUE_VERSION"
            KUEUE_VERSION=v${2#v}
            shift
            ;;
        --cluster-profile) MODE="cluster-profile" ;;
        --dry-run) DRY_RUN=true ;;
        --clean) CLEAN=true ;;
        --help | -h)
            usage
            exit
            ;;
        *) refuse "unknown option $1; --help lists them" ;;
        esac
        shift
    done
}

check_version() {
    local oldest=$OLDEST_KUEUE
    [[ $MODE != cluster-profile ]] || oldest=$OLDEST_KUEUE_WITH_PROFILES
    [[ $KUEUE_VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$ ]] ||
        refuse "$KUEUE_VERSION is not a version such as v0.19.2"
    is_at_least "${KUEUE_VERSION#v}" "$oldest" ||
        refuse "Kueue $KUEUE_VERSION is too old here: $oldest or newer is needed"
}

# -- how commands are run, and told

refuse() {
    printf 'setup-env.sh: %s\n' "$1" >&2
    exit 2
}

step() { printf '\n# %s\n' "$1"; }

# Tells a command, without the token in it.
told() {
    local mark=$1 word line=
    shift
    for word; do
        [[ -z $TOKEN ]] || word=${word//"$TOKEN"/<hub-token>}
        [[ $word =~ ^[][A-Za-z0-9_./:=,@%+{}\<\>-]+$ ]] || word=${word@Q}
        line+=" $word"
    done
    printf '%s%s\n' "$mark" "$line" >&3
}

# Runs a command that changes something.
run() {
    told + "$@"
    [[ $DRY_RUN == true ]] || "$@"
}

# Asks for something; on a dry run it is not there.
ask() {
    told '?' "$@"
    [[ $DRY_RUN == false ]] && "$@" 2>/dev/null
}

on() { # CLUSTER ARGUMENTS…
    run kubectl --context "kind-$1" "${@:2}"
}

asked_on() { # CLUSTER ARGUMENTS…
    ask kubectl --context "kind-$1" "${@:2}"
}

# -- what is needed

check_tools() {
    local tool found name oldest
    [[ $DRY_RUN == false ]] || return 0
    for tool in "${TOOLS[@]}"; do
        name=${tool%%:*} oldest=${tool##*:}
        [[ " $* " == *" $name "* ]] || continue
        command -v "$name" >/dev/null || refuse "$name is not on PATH: $oldest or newer is needed"
        found=$(version_of "$name")
        is_at_least "$found" "$oldest" ||
            refuse "$name is ${found:-of no version that it tells}: $oldest or newer is needed"
    done
}

version_of() {
    local said
    case $1 in
    docker) said=$(docker version --format '{{.Client.Version}}' 2>/dev/null) || true ;;
    kubectl) said=$(kubectl version --client 2>/dev/null) || true ;;
    *) said=$("$1" version 2>/dev/null) || true ;;
    esac
    [[ $said =~ [0-9]+\.[0-9]+\.[0-9]+ ]] && printf '%s' "${BASH_REMATCH[0]}" || true
}

is_at_least() { [[ -n $1 && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

# -- the steps

make_clusters() {
    local there cluster
    step "Four clusters"
    there=$(ask kind get clusters) || true
    for cluster in "$HUB" "${WORKERS[@]}"; do
        is_among "$cluster" "$there" || run kind create cluster --name "$cluster" --wait 180s
    done
}

delete_clusters() {
    local there cluster
    step "The clusters go"
    there=$(ask kind get clusters) || there=$(printf '%s\n' "$HUB" "${WORKERS[@]}") # a dry run tells all of them
    for cluster in "$HUB" "${WORKERS[@]}"; do
        ! is_among "$cluster" "$there" || run kind delete cluster --name "$cluster"
    done
}

is_among() { [[ $'\n'$2$'\n' == *$'\n'"$1"$'\n'* ]]; }

make_hub() {
    local gates=()
    step "OCM on the hub"
    [[ $MODE != cluster-profile ]] || gates=(--feature-gates=ClusterProfile=true)
    asked_on "$HUB" get clustermanager cluster-manager >/dev/null ||
        run clusteradm init --wait "${gates[@]}" --context "kind-$HUB"
}

join_workers() {
    local worker api_server='<hub-apiserver>' strangers=()
    step "The workers join"
    for worker in "${WORKERS[@]}"; do
        if ! asked_on "$HUB" get managedcluster "$worker" >/dev/null; then
            [[ -n $TOKEN ]] || get_token
            run clusteradm join --hub-token "$TOKEN" --hub-apiserver "$api_server" --cluster-name "$worker" \
                --force-internal-endpoint-lookup --wait --context "kind-$worker"
        fi
        tell_address "$worker"
    done
    for worker in "${WORKERS[@]}"; do
        is_accepted "$worker" || strangers+=("$worker")
    done
    ((${#strangers[@]} == 0)) ||
        run clusteradm accept --clusters "$(joined "${strangers[@]}")" --wait --context "kind-$HUB"
}

# Sets TOKEN and api_server to what lets a cluster in.
get_token() {
    local said
    if ! said=$(ask clusteradm get token --context "kind-$HUB"); then
        [[ $DRY_RUN == true ]] || refuse "clusteradm gives no token on $HUB"
        TOKEN='<hub-token>'
        return
    fi
    TOKEN=$(sed -n 's/^token=//p' <<<"$said")
    api_server=$(sed -n 's/.*--hub-apiserver \([^ ]*\).*/\1/p' <<<"$said")
    [[ -n $TOKEN && -n $api_server ]] || refuse "clusteradm gives no token on $HUB"
}

is_accepted() {
    [[ $(asked_on "$HUB" get managedcluster "$1" -o 'jsonpath={.spec.hubAcceptsClient}') == true ]]
}

joined() { local IFS=, && printf '%s' "$*"; }

# Where the other clusters find a worker; OCM copies it into the ManagedCluster, and kubeconfigs are made from that.
tell_address() {
    local ca
    ca=$(ask kubectl config view --context "kind-$1" --raw --minify --flatten \
        -o 'jsonpath={.clusters[0].cluster.certificate-authority-data}') || ca="<ca-of-$1>"
    on "$1" patch klusterlet klusterlet --type merge --patch \
        "{\"spec\":{\"externalServerURLs\":[{\"url\":\"https://$1-control-plane:6443\",\"caBundle\":\"$ca\"}]}}"
}

install_kueue() {
    local cluster values
    step "Kueue $KUEUE_VERSION on all of them, queues on the workers"
    for cluster in "$HUB" "${WORKERS[@]}"; do
        values=kind/kueue.yaml
        [[ $cluster != "$HUB" || $MODE != cluster-profile ]] || values=kind/kueue-cluster-profile.yaml
        install "$cluster" kueue-system kueue "$KUEUE_CHART" --version "${KUEUE_VERSION#v}" --values "$values"
    done
    if [[ $MODE == cluster-profile ]]; then
        on "$HUB" -n kueue-system patch deployment kueue-controller-manager --patch-file kind/kueue-plugin.yaml
        on "$HUB" -n kueue-system rollout status deployment/kueue-controller-manager --timeout "$PATIENCE"
    fi
    for cluster in "${WORKERS[@]}"; do
        on "$cluster" apply --server-side -f kind/worker-queues.yaml
    done
}

install() { # CLUSTER NAMESPACE NAME CHART ARGUMENTS…
    run helm upgrade --install "$3" "$4" --namespace "$2" --create-namespace --kube-context "kind-$1" \
        --wait --timeout "$PATIENCE" "${@:5}"
}

bind_cluster_set() {
    step "The cluster set of the samples"
    on "$HUB" apply --server-side -f samples/fleet/cluster-set.yaml
    on "$HUB" label managedcluster "${WORKERS[@]}" cluster.open-cluster-management.io/clusterset=spoke --overwrite
}

install_addons() {
    local addons=open-cluster-management-addon account=() proxy=()
    step "OCM's addons"
    if [[ $MODE == cluster-profile ]]; then
        # Charts of different age have one name or the other, and mind no name that they do not have.
        account=(--set featureGates.clusterProfile=true --set featureGates.clusterProfileCredSyncer=true)
        proxy=(--set userServer.enabled=true --set enableServiceProxy=true
            --set featureGates.clusterProfileAccessProvider=true)
    fi
    run helm repo add ocm "$CHARTS" --force-update
    run helm repo update ocm
    install "$HUB" $addons managed-serviceaccount ocm/managed-serviceaccount "${account[@]}"
    install "$HUB" open-cluster-management cluster-permission ocm/cluster-permission \
        --set global.imageOverrides.cluster_permission=quay.io/open-cluster-management/cluster-permission:latest
    install "$HUB" $addons cluster-proxy ocm/cluster-proxy \
        --set installByPlacement.placementName=global --set installByPlacement.placementNamespace=$addons "${proxy[@]}"
    install "$HUB" $addons resource-usage-collect-addon ocm/resource-usage-collect-addon \
        --set skipClusterSetBinding=true \
        --set global.image.repository=quay.io/open-cluster-management/resource-usage-collect-addon
}

install_controller() {
    step "This controller, from here"
    run docker build --tag "$IMAGE" .
    run kind load docker-image "$IMAGE" --name "$HUB"
    on "$HUB" apply --server-side -k "config/overlays/$MODE"
    on "$HUB" -n placement-ac-system rollout restart deployment/placement-ac # the same tag may be another image
    on "$HUB" -n placement-ac-system rollout status deployment/placement-ac --timeout "$PATIENCE"
}

pretend_gpus() {
    local worker there="{\"nvidia.com/gpu\":\"$GPUS\"}"
    step "GPUs that are only said to be there"
    for worker in "${GPU_WORKERS[@]}"; do
        on "$worker" patch node "$worker-control-plane" --subresource=status --type merge \
            --patch "{\"status\":{\"capacity\":$there,\"allocatable\":$there}}"
    done
    on "$HUB" label managedcluster "${GPU_WORKERS[@]}" accelerator=nvidia-tesla-t4 --overwrite
}

wait_for_all() {
    local worker addon
    step "Until all of it is up"
    on "$HUB" wait managedcluster "${WORKERS[@]}" --for=condition=ManagedClusterConditionAvailable --timeout "$PATIENCE"
    for worker in "${WORKERS[@]}"; do
        for addon in "${ADDONS[@]}"; do
            on "$HUB" -n "$worker" wait "managedclusteraddon/$addon" --for=create --timeout "$PATIENCE"
            on "$HUB" -n "$worker" wait "managedclusteraddon/$addon" --for=condition=Available --timeout "$PATIENCE"
        done
        on "$HUB" -n "$worker" wait addonplacementscore/resource-usage-score --for=create --timeout "$PATIENCE"
    done
}

tell() {
    step "The hub is kind-$HUB: kubectl --context kind-$HUB get managedclusters; make test-kind"
}

((BASH_VERSINFO[0] > 4 || (BASH_VERSINFO[0] == 4 && BASH_VERSINFO[1] >= 4))) || refuse "bash 4.4 or newer is needed"
main "$@"
