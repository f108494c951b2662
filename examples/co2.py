# SPDX-License-Identifier: BSD-3-Clause
# examples/co2.py: forecasts Mauna Loa's CO2 by a Gaussian process whose matrix never exists.
"""Weekly CO2 since 1958 (statsmodels, public domain): learns until 1994, forecasts the rest.

The covariance is a NumPy function of blocks of indices: a trend, a yearly cycle that changes over
decades, and irregularities of months. Its form and parameters are those of Rasmussen, Williams,
Gaussian Processes for Machine Learning, 2006, section 5.4.3.
"""

import numpy as np
from statsmodels.datasets import co2

import quadriga
from quadriga import linalg

series = co2.load_pandas().data["co2"].dropna()  # 59 weeks were not measured
days = (series.index - series.index[0]) / np.timedelta64(1, "D")
years, ppm = 1958.24 + days.to_numpy() / 365.2425, series.to_numpy()
known = years < 1994
past, future = years[known], years[~known]
level = ppm[known].mean()
NOISE = 0.19**2


def covariance(t, u):
    """Between times in years: columns and rows as NumPy broadcasts them."""
    apart = np.abs(t - u)
    trend = 66**2 * np.exp(-0.5 * (apart / 67) ** 2)
    cycle = 2.4**2 * np.exp(-0.5 * (apart / 90) ** 2 - 2 * (np.sin(np.pi * apart) / 1.3) ** 2)
    months = 0.66**2 * (1 + 0.5 * (apart / 1.2) ** 2 / 0.78) ** -0.78
    weeks = 0.18**2 * np.exp(-0.5 * (apart / 0.13) ** 2)
    return trend + cycle + months + weeks


with quadriga.Engine("emulated:2,memory=8MiB") as engine:
    matrix = linalg.from_function(
        len(past), lambda i, j: covariance(past[i], past[j]) + NOISE * (i == j), hermitian=True
    )
    factor = linalg.cho_factor(matrix, lower=True, engine=engine)
    weights = factor.solve(ppm[known] - level)
    fit = weights @ (ppm[known] - level) + factor.logdet() + len(past) * np.log(2 * np.pi)
    cross = linalg.from_function(
        (len(future), len(past)), lambda i, j: covariance(future[i], past[j])
    )
    forecast = level + linalg.matmul(cross, weights, engine=engine)
    # Variance of the forecast: what the past can't explain.
    held = linalg.solve_triangular(factor[0], cross[:, :].T, lower=True, engine=engine)
    deviation = np.sqrt(covariance(0.0, 0.0) + NOISE - (held**2).sum(axis=0))

misses = forecast - ppm[~known]
inside = np.mean(np.abs(misses) < 1.96 * deviation)
print(f"{len(past)} weeks learned, log likelihood {-fit / 2:.1f}")
for year in range(1994, 2002):
    of_year = future.astype(int) == year
    error = np.sqrt(np.mean(misses[of_year] ** 2))
    print(f"{year}: {forecast[of_year].mean():.1f} ppm forecast, off by {error:.2f} ppm")
print(f"{inside:.0%} of the weeks are inside the forecast's 95 % band")
assert np.sqrt(np.mean(misses**2)) < 1.5 and inside > 0.9
