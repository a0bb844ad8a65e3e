# The controller's image; `make image` builds it.
# Everything is pinned: the bases by digest (renew one with `docker buildx imagetools inspect <tag>`; these were taken
# on 2026-11-21), what pip installs by hash (`make lock`). Both bases have Debian 13 and Python 3.13, so that what one installs runs on the other.

FROM python:3.13-slim-trixie@sha256:ffb752e139c0a19692a43af8d8523b274222dd68eebad5d583b45c2201c6e30a AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src

COPY requirements.lock requirements-build.lock ./
RUN pip install --prefix /app --ignore-installed --require-hashes --only-binary :all: -r requirements.lock \
    && pip install --require-hashes --only-binary :all: -r requirements-build.lock

COPY pyproject.toml README.md LICENSE ./
COPY placement_ac placement_ac
# Of the scripts only ours goes on, run by the Python of the other base.
RUN pip install --prefix /app --no-deps --no-build-isolation . \
    && find /app/bin -type f ! -name placement-ac -delete \
    && sed -i '1c #!/usr/bin/python3' /app/bin/placement-ac

# No shell, no package manager, no compiler.
FROM gcr.io/distroless/python3-debian13:nonroot@sha256:0e52dfee02b1aba142e77b004f6ea11210b79456b51f10d70e9bd631cbc21d98
LABEL org.opencontainers.image.title="placement-ac" \
      org.opencontainers.image.description="Turns the clusters an OCM Placement selects into the worker clusters of Kueue's MultiKueue" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
ENV PATH=/app/bin:/usr/bin:/bin \
    PYTHONPATH=/app/lib/python3.13/site-packages \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["placement-ac"]
CMD ["run"]
