"""What the settings mean for the thinking part: how clusters leave, what is made, what a worker needs."""

from pathlib import Path

from placement_ac.fitness import Needs
from placement_ac.rights import External, external, kinds, needed, rules
from placement_ac.settings import BadSettings, Settings
from placement_ac.snapshot import Policy, Terms


def policy_of(settings: Settings) -> Policy:
    """Return what the settings say of how clusters leave, stand and are told of."""
    return Policy(
        removal=settings.removal_policy,
        drain_deadline=settings.drain_deadline,
        waiting_grace=settings.waiting_grace,
        retention=settings.cluster_retention,
        loss_share=settings.mass_loss_share,
        loss_grace=settings.mass_loss_grace,
        reorder_margin=settings.reorder_margin,
        reorder_interval=settings.reorder_interval,
        retry_after=settings.retry_waiting_after,
        requeue_after=round(settings.requeue_after),
        dispatcher=settings.dispatcher,
        step_size=settings.step_size,
        round_timeout=settings.round_timeout,
        warning=settings.credentials_warning,
        probe=settings.credentials_probe,
    )


def needs_of(settings: Settings, version: str) -> Needs:
    """Return what the settings want of a worker; `version` is that of the Workloads which it gets."""
    frameworks = settings.frameworks, _externals(settings)
    return Needs(version, kinds(*frameworks), needed(*frameworks))


def _externals(settings: Settings) -> tuple[External, ...]:
    parsed = map(external, settings.external_frameworks)
    return tuple(one for one in parsed if isinstance(one, External))  # others the settings do not take


def terms_of(settings: Settings) -> Terms:
    """Return what the settings say of the credentials that are made. Raises BadSettings."""
    granted = rules(settings.frameworks, _externals(settings))
    return Terms(
        provision=settings.credentials_provision != "none",
        account=settings.credentials_account,
        form=settings.credentials_form,
        validity=settings.credentials_validity,
        rules=tuple(rule.as_dict() for rule in granted),
        proxy=settings.cluster_proxy,
        proxy_authority=_authority(settings.cluster_proxy_ca),
    )


def _authority(path: Path | None) -> bytes:
    try:
        return path.read_bytes() if path else b""
    except OSError as error:
        raise BadSettings(f"cluster-proxy-ca: {path} cannot be read: {error.strerror}") from None
