# pkb for the platform `cpu`. docs/containers.md says how to build and run it, and what the sandbox needs.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
RUN pip install --no-cache-dir hatchling==1.33.0
WORKDIR /source
COPY . .
RUN python -m hatchling build -t wheel -d /dist

FROM python:${PYTHON}-slim-bookworm
# Candidates may have extensions in C++. A release of Debian keeps only the newest build of a package: a pinned version
# would soon not be found.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends g++ \
    && rm -rf /var/lib/apt/lists/*

# From the index in PIP_INDEX_URL or PIP_EXTRA_INDEX_URL, if they are given: CPU builds of torch are smaller.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG TORCH=torch==2.13.0
RUN python -m venv /opt/pkb && /opt/pkb/bin/pip install --no-cache-dir "${TORCH}" ninja==1.13.2
COPY --from=build /dist/*.whl /tmp/dist/
# hadolint ignore=DL3013
RUN /opt/pkb/bin/pip install --no-cache-dir /tmp/dist/*.whl
ENV PATH=/opt/pkb/bin:$PATH

# The sandbox limits the number of processes of an ordinary user, not of root. Use your own id to write to your folders.
ARG UID=1000
RUN useradd --uid "${UID}" --create-home pkb \
    && mkdir /work \
    && chown pkb: /work
USER ${UID}
WORKDIR /work
ENTRYPOINT ["pkb"]
CMD ["doctor"]
